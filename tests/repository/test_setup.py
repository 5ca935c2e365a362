""".ci/setup tests: what only tests use is installed where that is allowed, else named; nothing fails for want of it."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.gpu_compilers.platforms import RADV_ICD
from tests.helpers.waiting import PATIENCE_S

SETUP = Path(__file__).parents[2] / ".ci" / "setup"
APT = '#!/bin/sh\necho "$@" >>"$(dirname "$0")/asked"\nexit %d\n'
VULKAN = "" if RADV_ICD else " mesa-vulkan-drivers libvulkan1"  # a file that the machine has or not
TOOLS = f"glslang-tools xvfb xdotool cwm apitrace spirv-tools{VULKAN}"


def run_setup(folder: Path, user: int, apt: int | None, tools: tuple[str, ...] = ()) -> tuple[str, list[str]]:
    """Its complaint and what it asked apt-get for, on a machine with a user, an apt-get that exits so, and tools."""
    scripts = {"id": f"#!/bin/sh\necho {user}\n", **dict.fromkeys(tools, "#!/bin/sh\n")}
    if apt is not None:
        scripts["apt-get"] = APT % apt
    for name, text in scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    for name in ("dirname", "tr"):
        (folder / name).symlink_to(next(p / name for p in map(Path, os.get_exec_path()) if (p / name).exists()))
    done = subprocess.run(
        ["/bin/sh", str(SETUP), "tests"],
        env={"PATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0
    asked = folder / "asked"
    return done.stderr.strip(), asked.read_text().splitlines() if asked.exists() else []


def test_root_installs_what_is_missing(tmp_path: Path) -> None:
    complaint, asked = run_setup(tmp_path, 0, 0)
    assert complaint == ""
    assert asked[0].endswith("update")
    assert asked[1].endswith(f"--no-install-recommends {TOOLS}")


def test_nothing_is_asked_for_where_all_is_there(tmp_path: Path) -> None:
    there = ("glslangValidator", "Xvfb", "xdotool", "cwm", "apitrace", "spirv-val")
    assert run_setup(tmp_path, 0, 0 if RADV_ICD else None, there)[1] == []


@pytest.mark.parametrize(("user", "apt"), [(1000, 0), (0, None), (0, 100)])
def test_others_are_told_in_one_line(user: int, apt: int | None, tmp_path: Path) -> None:
    complaint, asked = run_setup(tmp_path, user, apt, ("Xvfb",))
    assert complaint == (
        f"texelflow: some tests are skipped; to run them too: sudo apt-get install -y {TOOLS.replace('xvfb ', '')}"
    )
    assert (asked != []) == (user == 0 and apt is not None)

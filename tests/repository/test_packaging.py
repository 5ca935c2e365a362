"""A wheel built from the project holds all that it needs, and works outside the checkout, without make or a shell."""

import json
import os
import subprocess
import sys
import zipfile
from email import message_from_string
from itertools import islice
from pathlib import Path
from shutil import copy, copytree, ignore_patterns
from typing import Any

import av
import numpy as np
import pytest
from packaging.requirements import Requirement

from tests.helpers.clips import write_clip
from tests.helpers.markers import exhaustive
from texelflow.app.frame.looks.effects import BUILT_IN_BACKGROUNDS
from texelflow.app.media.sources import FileSource

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CHECKOUT = Path(__file__).parents[2]
PACKAGES = ("app", "gpu_delegate", "shaders", "assets")
RESOURCES = ("*.py", "*.comp", "*.glsl", "*.vert", "*.frag", "*.mp4", "*.png", "*.jpg", "*.md", "*.service")
LICENCES = ("LICENSE", "NOTICE")
PIP = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check")


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What the command prints; it must succeed."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env={**os.environ, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def settings() -> Any:
    """What pyproject.toml says to setuptools."""
    with (CHECKOUT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)["tool"]["setuptools"]


def resources() -> set[str]:
    """Everything in the checkout that the program needs at run time."""
    found = {path for package in PACKAGES for kind in RESOURCES for path in (CHECKOUT / package).rglob(kind)}
    names = {path.relative_to(CHECKOUT).as_posix() for path in found}
    return {f"texelflow/{name.removeprefix('app/api/')}" for name in names}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel, built from a copy so that nothing left over from an earlier build gets in."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("pyproject.toml", *LICENCES):
        copy(CHECKOUT / name, folder)
    for package in PACKAGES:
        copytree(CHECKOUT / package, folder / package, ignore=ignore_patterns("__pycache__"))
    run(*PIP, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", folder / "dist", ".", cwd=folder)
    (built,) = (folder / "dist").glob("texelflow-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the wheel is installed in."""
    folder = tmp_path_factory.mktemp("installed")
    run(*PIP, "install", "--no-deps", "--no-index", "--no-compile", "--target", folder, wheel, cwd=folder)
    return folder


def test_every_package_is_listed() -> None:
    places = settings()["package-dir"]
    folders = {path.parent for package in PACKAGES for path in (CHECKOUT / package).rglob("__init__.py")}
    names = set()
    for folder in folders:
        place = folder.relative_to(CHECKOUT).as_posix()
        mapped = {path: name for name, path in places.items()}
        names.add(mapped.get(place) or f"texelflow.{place.replace('/', '.')}")
    assert set(settings()["packages"]) == names
    with_code = {path.parent for package in PACKAGES for path in (CHECKOUT / package).rglob("*.py")}
    assert with_code == folders, "a folder with modules is no package"


def test_the_wheel_holds_every_module_shader_and_asset_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert any(name.endswith(".comp") for name in resources())
    assert {name for name in names if ".dist-info/" not in name} == resources() | {"texelflow/py.typed"}


def test_the_licence_the_notices_and_the_command_are_in_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (information,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        for name in LICENCES:
            assert archive.read(f"{information}/licenses/{name}") == (CHECKOUT / name).read_bytes()
        metadata = message_from_string(archive.read(f"{information}/METADATA").decode())
        assert metadata["License-Expression"] == "Apache-2.0"
        assert "texelflow = texelflow.app.__main__:main" in archive.read(f"{information}/entry_points.txt").decode()
    assert "Apache License\n                           Version 2.0" in (CHECKOUT / "LICENSE").read_text()
    notice = (CHECKOUT / "NOTICE").read_text()
    assets = {path.name for path in (CHECKOUT / "assets").iterdir() if path.suffix in (".png", ".jpg", ".mp4")}
    unnamed = {name for name in assets if name not in notice}
    assert unnamed == {*BUILT_IN_BACKGROUNDS.values()}  # computed, with nobody in them


SYSTEMS = [
    *(("linux", machine) for machine in ("x86_64", "aarch64", "armv7l", "riscv64")),
    *(("darwin", machine) for machine in ("x86_64", "arm64")),
    *(("win32", machine) for machine in ("AMD64", "ARM64")),
]


@pytest.mark.parametrize(("system", "machine"), SYSTEMS)
def test_code_for_the_cpu_comes_along_where_llvmlite_has_wheels(system: str, machine: str, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith("METADATA"))
        asked = message_from_string(archive.read(name).decode()).get_all("Requires-Dist") or []
    found = [Requirement(each) for each in asked if each.startswith("llvmlite")]
    place = {"sys_platform": system, "platform_machine": machine, "extra": ""}
    taken = [each for each in found if each.marker is None or each.marker.evaluate(place)]
    assert len(taken) == (machine not in ("armv7l", "riscv64", "ARM64"))
    assert all(each.specifier.contains("0.46") != ((system, machine) == ("darwin", "x86_64")) for each in taken)


def test_resources_are_found_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    program = (
        "from importlib.resources import files\n"
        f"for package in {[f'texelflow.{name}' for name in PACKAGES]!r}:\n"
        "    for item in files(package).iterdir():\n"
        "        print(item, len(item.read_bytes()) if item.is_file() else 0)\n"
    )
    out = run(sys.executable, "-c", program, cwd=tmp_path, PYTHONPATH=str(installed))
    listed = dict(line.rsplit(" ", 1) for line in out.splitlines())
    for name in resources():
        if name.count("/") == 2 and not name.endswith(".py"):
            assert int(listed[str(installed / name)]) == (CHECKOUT / name.removeprefix("texelflow/")).stat().st_size


@exhaustive
@pytest.mark.usefixtures("selfie_model")
def test_the_demo_needs_neither_make_nor_a_shell_nor_opengl_that_computes(installed: Path, tmp_path: Path) -> None:
    clip = installed / "texelflow" / "assets" / "people.mp4"
    with av.open(str(CHECKOUT / "assets" / "people.mp4")) as file:
        frames = islice(file.decode(video=0), 112)
        write_clip(clip, [np.ascontiguousarray(frame.to_ndarray(format="rgb24")[::4, ::4]) for frame in frames])
    alone = {"PATH": "", "SHELL": "", "PIP_NO_INDEX": "1", "MESA_GL_VERSION_OVERRIDE": "4.1"}  # macOS's
    alone["TEXELFLOW_GL_API"] = "gl"
    command = (sys.executable, "-m", "texelflow", "demo", "--no-window", "--json")
    figures = json.loads(run(*command, cwd=tmp_path, PYTHONPATH=str(installed), **alone))
    assert (figures["backend"], figures["agreement"]) == ("cpu", {})
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"demo.json", "demo.mp4", "demo.png"}
    with FileSource(tmp_path / "out" / "demo.mp4") as written:
        assert sum(1 for _ in written) == 112

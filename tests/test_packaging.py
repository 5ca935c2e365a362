"""A wheel built from the project works outside the checkout: code, shaders and assets are in it."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

CHECKOUT = Path(__file__).parent.parent
PACKAGES = ("app", "gpu_delegate", "shaders", "assets")
RESOURCES = ("*.py", "*.comp", "*.glsl", "*.vert", "*.frag", "*.mp4", "*.png", "*.jpg", "*.md")


def run(*command: str | Path, cwd: Path) -> str:
    """What the command prints; it must succeed."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def resources() -> set[str]:
    """Everything in the checkout that the program needs at run time."""
    found = {path for package in PACKAGES for kind in RESOURCES for path in (CHECKOUT / package).rglob(kind)}
    names = {path.relative_to(CHECKOUT).as_posix() for path in found}
    return {f"texelflow/{name.removeprefix('app/api/')}" for name in names}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel, built from a copy so that nothing left over from an earlier build gets in."""
    copy = tmp_path_factory.mktemp("copy")
    shutil.copy(CHECKOUT / "pyproject.toml", copy)
    for package in PACKAGES:
        shutil.copytree(CHECKOUT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    pip = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", copy / "dist", ".", cwd=copy)
    (built,) = (copy / "dist").glob("texelflow-*.whl")
    return built


def test_the_wheel_holds_every_module_shader_and_asset_and_nothing_else_at_the_top(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert any(name.endswith(".comp") for name in resources())
    assert resources() <= names
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"texelflow"}


def test_the_command_is_declared(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (entry_points,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        assert "texelflow = texelflow.app.__main__:main" in archive.read(entry_points).decode()


def test_resources_are_found_outside_the_checkout(wheel: Path, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    pip = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check")
    run(*pip, "install", "--no-deps", "--no-index", "--target", installed, wheel, cwd=tmp_path)
    program = (
        f"import sys; sys.path.insert(0, {str(installed)!r}); from importlib.resources import files\n"
        f"for package in {[f'texelflow.{name}' for name in PACKAGES]!r}:\n"
        "    for item in files(package).iterdir():\n"
        "        print(item, len(item.read_bytes()) if item.is_file() else 0)\n"
    )
    listed = dict(line.rsplit(" ", 1) for line in run(sys.executable, "-c", program, cwd=tmp_path).splitlines())
    for name in resources():
        if name.count("/") == 2 and not name.endswith(".py"):
            assert int(listed[str(installed / name)]) == (CHECKOUT / name.removeprefix("texelflow/")).stat().st_size

"""The program in a folder with files that Python would import: none of them is ever executed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.models.test_models import index, write_wheel
from tests.helpers.display import Display
from tests.helpers.markers import exhaustive
from tests.helpers.running import ROOT
from tests.helpers.waiting import PATIENCE_S
from texelflow import assets
from texelflow.app.models.catalogue import CATALOGUE
from texelflow.gpu_delegate.base.isolated_python import OURS, python_command

__all__ = ["index"]  # a fixture

CLIP = Path(assets.__file__).parent / "people.mp4"
TEXELFLOW = Path(sys.executable).with_name("texelflow")  # as users start it: `python -m` trusts the current folder
MODULES = ("pip", "app", "gpu_delegate", "numpy", "typing", "ctypes", "glfw", "json", "runpy", "sitecustomize")
PACKAGES = ("app", "gpu_delegate")


@pytest.fixture
def poisoned(tmp_path: Path) -> Path:
    """A folder with modules and packages that leave a file behind when they are executed, in a folder beside it."""
    folder, marks = tmp_path / "poisoned", tmp_path / "executed"
    marks.mkdir()
    for name in PACKAGES:
        (folder / name).mkdir(parents=True)
    for file in (*(f"{name}.py" for name in MODULES), *(f"{name}/__init__.py" for name in PACKAGES)):
        (folder / file).write_text(f"open({str(marks / file.replace('/', '-'))!r}, 'w').close()\n")
    return folder


@pytest.fixture
def real_index(index: Path, selfie_model: Path, selfie_landscape_model: Path) -> Path:
    """A package index that has the catalogue's real models; the cache is empty."""
    paths = {"selfie": selfie_model, "selfie-landscape": selfie_landscape_model}
    write_wheel(index, {name: path.read_bytes() for name, path in paths.items()})
    return index


def executed(poisoned: Path) -> list[str]:
    return sorted(os.listdir(poisoned.parent / "executed"))


def run(folder: Path, *arguments: object, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(TEXELFLOW), *map(str, arguments)], cwd=folder, env={**os.environ, **environment},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_the_poison_works(poisoned: Path) -> None:
    for module in ("typing", "app"):
        subprocess.run([sys.executable, "-S", "-c", f"import {module}"], cwd=poisoned, check=False, capture_output=True)
    assert executed(poisoned) == ["app-__init__.py", "typing.py"]


@exhaustive
@pytest.mark.gl
def test_doctor(poisoned: Path, selfie_model: Path) -> None:
    done = run(poisoned, "doctor", "--json")
    assert executed(poisoned) == []
    told = json.loads(done.stdout)
    assert (done.returncode, told["ok"], done.stderr) == (0, True, "")
    named = {finding["name"]: finding for finding in told["findings"]}
    assert {named[name]["state"] for name in ("version", "fence", "TensorFlow Lite", "packages")} == {"ok"}
    assert "device 0" in named


@exhaustive
@pytest.mark.gl
def test_workers_of_an_archive(poisoned: Path, selfie_model: Path) -> None:
    shutil.copy(CLIP.with_name("background.jpg"), poisoned / "picture.jpg")
    done = run(poisoned, "archive", "picture.jpg", "--out", "done", "--workers", "1")
    assert executed(poisoned) == []
    assert (done.returncode, (poisoned / "done" / "picture.png").is_file()) == (0, True), done.stderr


@exhaustive
def test_fetching(poisoned: Path, real_index: Path) -> None:
    done = run(poisoned, "models", "fetch", "selfie", "--json")
    assert executed(poisoned) == []
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(json.loads(done.stdout)["path"]).stat().st_size == CATALOGUE["selfie"].bytes


@exhaustive
def test_a_first_replay_in_a_window(poisoned: Path, real_index: Path, display: Display) -> None:
    command = [str(TEXELFLOW), "replay", str(CLIP), "--window", "--loop", "--backend", "cpu"]
    with subprocess.Popen(command, cwd=poisoned, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            display.window(CLIP.name)
            process.terminate()
            error = process.communicate(timeout=PATIENCE_S)[1]
        finally:
            process.kill()
    assert process.returncode == 143, error
    assert executed(poisoned) == []
    assert list((real_index.parent / "cache").rglob("*.tflite"))


def started(program: str, folder: Path, **environment: str) -> str:
    """What a process of this program prints that was started by one in the folder, with PYTHONPATH and such."""
    code = (
        "import subprocess, sys\nfrom texelflow.gpu_delegate.base.isolated_python import *\n"
        f"trusted = OURS if sys.argv[1:] else None\n"
        f"print(subprocess.run(python_command({program!r}, trusted=trusted), capture_output=True, text=True).stdout)"
    )
    command = [sys.executable, "-c", code, *environment.pop("trusted", "")]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_what_the_user_installed_elsewhere_is_imported_and_what_lies_here_is_not(tmp_path: Path) -> None:
    here, there, link = tmp_path / "here", tmp_path / "there", tmp_path / "link"
    for folder in (here, there):
        folder.mkdir()
        (folder / "addition.py").write_text(f"print({folder.name!r})")
    link.symlink_to(here)
    path = os.pathsep.join(map(str, ("", ".", here, link, f"{here}/../here", there, ROOT)))
    assert started("import addition", here, PYTHONPATH=path) == "there"
    (there / "addition.py").unlink()
    assert started("import addition", here, PYTHONPATH=path) == ""


def test_the_installed_package_is_imported_from_even_if_it_is_the_current_folder(tmp_path: Path) -> None:
    package = tmp_path / "texelflow"
    shutil.copytree(ROOT / "app", package / "app", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "gpu_delegate", package / "gpu_delegate", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "app" / "api" / "__init__.py", package)
    program = "import texelflow; print(texelflow.__file__)"
    ours = str(package / "__init__.py")
    assert started(program, tmp_path, trusted="t") == ours
    assert started(program, tmp_path) != ours
    assert OURS is None, "these tests run in the repository"


def test_the_folder_may_be_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    command = python_command("import sys, platformdirs; print(sys.argv[1])", "an argument")
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "an argument\n"


def test_python_is_started_in_one_place() -> None:
    """Each other place would have to know all this as well."""
    for file in (file for package in PACKAGES for file in (ROOT / package).rglob("*.py")):
        assert "sys.executable" not in file.read_text("utf-8") or file.name == "isolated_python.py", file

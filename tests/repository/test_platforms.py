"""Windows and macOS, as far as Linux can tell: every module loads where what is Linux's own is missing."""

import io
import os
import subprocess
import sys
from pathlib import Path

import glcontext
import numpy as np
import pytest

from tests.helpers.markers import exhaustive
from texelflow.app.__main__ import main
from texelflow.app.media.recorder import write_png
from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl import context

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]

# All is loaded once as it is here, so that other people's packages are there; then ours anew, on a machine that says it
# is another one, and lacks what that one lacks. os.name stays: Python's own paths go by it, and would be of no use.
PROGRAM = """
import importlib, os, pathlib, signal, sys, sysconfig

names, folder = sys.argv[1].split(), pathlib.Path(sys.argv[2])
MISSING = {
    "win32": (
        ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"),
        ("O_NONBLOCK", "O_CLOEXEC", "O_NOFOLLOW", "fork", "geteuid", "getuid", "killpg", "mkfifo", "sched_getaffinity",
         "setpriority", "statvfs", "wait4", "waitid"),
        ("SIGHUP", "SIGKILL", "SIGSTOP", "SIGCONT", "SIGPIPE", "SIGUSR1", "SIGUSR2", "pthread_kill", "sigwait"),
    ),
    "darwin": ((), ("sched_getaffinity", "posix_fallocate", "memfd_create"), ("sigtimedwait", "SIGPWR")),
}
sysconfig.get_config_vars()  # reads a file by the platform's name
for name in names:
    importlib.import_module(name)
for platform, (modules, functions, signals) in MISSING.items():
    for name in [name for name in sys.modules if name.partition(".")[0] == "texelflow"]:
        del sys.modules[name]
    kept = dict(vars(os)), dict(vars(signal))
    sys.platform = platform
    sys.modules.update(dict.fromkeys(modules))
    for holder, attributes in ((os, functions), (signal, signals)):
        for name in attributes:
            delattr(holder, name)
    for name in names:
        importlib.import_module(name)

    from texelflow.app import cli, stale_files
    from texelflow.app.capture import listing, v4l2
    from texelflow.app.media import growing_file, recorder
    from texelflow.app import displays
    from texelflow.app.verbs.doctor import diagnoses
    from texelflow.gpu_delegate.base import errors
    from texelflow.gpu_delegate.targets.gl import library
    import numpy as np

    assert cli.main(["models"]) == 0 and cli.main(["inspect", "--ops"]) == 0
    assert cli.main(["models", "fetch", "none"]) == 2
    (folder / "file").write_bytes(b"")
    with stale_files.locked(folder / "file") as is_locked:
        assert is_locked == (platform != "win32")
    file = growing_file.GrowingFile(str(folder / "grown"))
    file.have_room(100)
    file.append(b"abc")
    file.close()
    assert (folder / "grown").read_bytes() == b"abc"
    recorder.write_png(folder / "some.png", np.zeros((4, 4), np.uint8))
    try:
        with v4l2.open_node("/dev/nowhere"):
            raise AssertionError
    except OSError:
        pass
    for refused, kind in ((lambda: library.load_library("libEGL.so.1"), OSError),
                          (library.CurrentContext, errors.DeviceError)):
        try:
            refused()
            raise AssertionError
        except kind:
            pass
    assert displays.has_display({})
    assert diagnoses.egl({}, {}) == diagnoses.tools() == []
    assert diagnoses.display({"gl_version": "OpenGL 4.3", "renderer": "some GPU"}, {})[-1].state == "ok"
    assert "apt-get" not in diagnoses.opengl({"error": "none"})[0].advice

    sys.platform = "linux"
    vars(os).update(kept[0])
    vars(signal).update(kept[1])
    for name in modules:
        del sys.modules[name]
    print("well on", platform)
"""


def modules() -> list[str]:
    """Every module of the package, by its name as installed."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        folders = tomllib.load(file)["tool"]["setuptools"]["package-dir"]
    named = []
    for package, folder in folders.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            if not (package == "texelflow.app" and parts[0] == "api"):
                named.append(".".join((package, *(part for part in parts if part != "__init__"))))
    return named


@exhaustive
def test_every_module_loads_and_works_where_linuxs_own_are_missing(tmp_path: Path) -> None:
    assert {"texelflow", "texelflow.segmenter", "texelflow.app.cli", "texelflow.gpu_delegate.ops.resize"} <= {
        *modules()
    }
    environment = {**os.environ, "COLUMNS": "100"}
    command = [sys.executable, "-c", PROGRAM, " ".join(modules()), str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("well on")] == [
        "well on win32",
        "well on darwin",
    ]
    assert done.stdout.count("\nCONV_2D ") == 2, "ops are listed"


@pytest.mark.gl
@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_opengl_comes_from_the_systems_own_place(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def backend() -> object:
        def create(**settings: object) -> object:
            asked.append(settings)
            raise OSError("none in this test")

        return create

    monkeypatch.setattr(glcontext, "default_backend", backend)
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(DeviceError) as refused:
        context.open_context()
    assert asked[0] == {"mode": "standalone", "glversion": 430}
    assert str(refused.value) == "no OpenGL: none in this test; install the GPU's driver, or use --backend cpu"


def test_no_file_is_open_when_it_is_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, writers = os.replace, list[str]()

    def replace(source: str, target: str) -> None:
        """Looks at what Windows would object to: who has the file open to write."""
        for entry in os.scandir("/proc/self/fdinfo"):
            path = f"/proc/self/fd/{entry.name}"
            if os.path.exists(path) and os.path.realpath(path) == os.path.realpath(source):
                flags = next(line for line in Path(entry.path).read_text().splitlines() if line.startswith("flags"))
                writers.extend([path] if int(flags.split()[1], 8) & os.O_ACCMODE else [])
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    write_png(tmp_path / "some.png", np.zeros((4, 4), np.uint8))
    assert (tmp_path / "some.png").stat().st_size
    assert writers == []


@exhaustive
@pytest.mark.gl
def test_an_old_code_page_shows_question_marks(
    tmp_path: Path, selfie_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = tmp_path / "модель.tflite"
    name.symlink_to(selfie_model)
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "cp1252"))
    monkeypatch.setattr(sys, "argv", ["texelflow", "inspect", str(name)])
    assert main() == 0
    assert written.getvalue().decode("cp1252").startswith("??????  1x256x256x3")

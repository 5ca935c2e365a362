"""What several test modules share: the OpenGL context, the catalogue's models, a real frame, the snapshot option.

Only tests that ask for `context` need OpenGL; only tests that ask for a model need the network, once.
"""

import contextlib
import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import av
import hypothesis
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers import durations, markers
from tests.helpers.display import display, managed, managed_screen, screen  # noqa: F401  # fixtures
from tests.helpers.gpu_resets import gpu  # noqa: F401
from tests.helpers.live_stage import managed_theatre, people, still, theatre  # noqa: F401
from tests.helpers.markers import _no_devices, pytest_collection_modifyitems  # noqa: F401  # for all tests
from tests.helpers.picture_devices import pictures  # noqa: F401  # fixture
from tests.helpers.runtimes import runtime  # noqa: F401  # fixture
from texelflow import assets
from texelflow.app.__main__ import GARBAGE_AFTER
from texelflow.app.frame.backend_choice.auto_choice import AUTO_CHOICE
from texelflow.app.models.catalogue import resolve
from texelflow.gpu_delegate.base.cache_folder import VARIABLE as CACHE_FOLDER
from texelflow.gpu_delegate.base.cache_folder import cache_folder
from texelflow.gpu_delegate.targets.gl.context import Context, open_context
from texelflow.gpu_delegate.targets.gl.egl import Api
from texelflow.gpu_delegate.tuning.switch import VARIABLE

# No example fails because the machine is busy. "quick" is for `make check`, "usual" for `make test`; what names a
# number of examples keeps it.
hypothesis.settings.register_profile("full", deadline=None)
hypothesis.settings.register_profile("usual", deadline=None, max_examples=40)
hypothesis.settings.register_profile("quick", deadline=None, max_examples=20)
hypothesis.settings.load_profile("full")

# Thousands of kernels run once each, on a few pixels: where Mesa's cache is empty, a third of their time is llvmpipe's
# optimizer. `make models` runs networks as the driver compiles them by default.
LLVMPIPE_PASSES = "GALLIVM_PERF"
WORKER = "PYTEST_XDIST_WORKER"  # set in those that pytest-xdist starts
MODELS = "models"  # in a cache folder
FRAME = 60  # of the demo clip: two people at different sizes
SEED = 20190702


def pytest_addoption(parser: pytest.Parser) -> None:
    markers.pytest_addoption(parser)
    durations.pytest_addoption(parser)
    parser.addoption("--update-snapshots", action="store_true", help="store the generated GLSL as the right one")


def pytest_configure(config: pytest.Config) -> None:
    """Tests start the program again and again: Python keeps what it has compiled, even where the shell forbids it.

    Kernels are those of a GPU's family, and a GPU is taken for what it is.
    """
    gc.disable()  # until all tests are there, there is no garbage
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ[VARIABLE] = "0"  # whatever was tuned on this machine
    os.environ[AUTO_CHOICE] = "hardware"  # whatever was measured on it
    os.environ.setdefault(LLVMPIPE_PASSES, "nopt")
    sys.dont_write_bytecode = False
    durations.pytest_configure(config)
    if WORKER not in os.environ:
        folder = _open_cache()
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        if config.getoption("numprocesses", None) and not config.getoption("without_gl"):
            config.add_cleanup(_compile_first(folder))


def _open_cache() -> Path:
    """What tests compile is kept for those after them, in this folder, and by no other run; models are the user's."""
    models = cache_folder() / MODELS
    folder = Path(tempfile.mkdtemp(prefix="texelflow-tests-"))
    with contextlib.suppress(OSError):
        models.mkdir(parents=True, exist_ok=True)
        (folder / MODELS).symlink_to(models.absolute())
    os.environ[CACHE_FOLDER] = str(folder)
    return folder


def _compile_first(folder: Path) -> Callable[[], None]:
    """Has the kernels of the default model compiled, which each worker else does for itself at the same time.

    Returns what waits for that.
    """
    picture = Path(assets.__file__).parent / "demo.jpg"
    arguments = ["replay", str(picture), "--out", str(folder / "first.png"), "--backend", "gl"]
    command = [sys.executable, "-m", "texelflow.app", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def wait() -> None:
        process.wait()

    return wait


def pytest_collection_finish() -> None:
    """Tests and modules live to the end: collections of garbage need not visit them again and again, nor so often."""
    gc.enable()
    gc.set_threshold(GARBAGE_AFTER)
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _heed_signals() -> None:
    """Shells that run the suite in the background have it ignore some, and so would all programs that it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def _same_numbers_every_time() -> None:
    np.random.seed(SEED)


@pytest.fixture(autouse=True)
def _show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DEBUG", "COLUMNS"):  # of the shell's; tables are as wide as in a file
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True, scope="session")
def _graphs_are_verified_between_passes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("texelflow.gpu_delegate.passes.pipeline.is_verifying", lambda: True)
        yield


@pytest.fixture(scope="session")
def _opened_context() -> Iterator[Callable[[Api], Context]]:
    with contextlib.ExitStack() as stack:
        yield cache(lambda api: stack.enter_context(open_context(api=api)))


@pytest.fixture
def context(_opened_context: Callable[[Api], Context], request: pytest.FixtureRequest) -> Iterator[Context]:
    """The suite's one OpenGL context, current in this thread; a test that leaves GL errors or complaints fails.

    By `on_both_apis` a test also gets the suite's one context of OpenGL ES.
    """
    opened = _opened_context(getattr(request, "param", "gl"))
    opened.make_current()  # other modules open contexts of their own
    opened.check_errors("the tests before")
    yield opened
    opened.check_errors("the test")


@pytest.fixture
def llvmpipe(context: Context) -> None:
    """For tests of what Mesa's software renderer alone does; on a GPU they are skipped."""
    if not context.is_software:
        pytest.skip(f"about llvmpipe; here is {context.renderer}")


@pytest.fixture(scope="session")
def selfie_model() -> Path:
    """The catalogue's default model, fetched once and kept in the user's cache."""
    return resolve("selfie").path


@pytest.fixture(scope="session")
def selfie_landscape_model() -> Path:
    """The catalogue's wide model, which comes with the other."""
    return resolve("selfie-landscape").path


@pytest.fixture(scope="session")
def frame_rgba() -> npt.NDArray[np.uint8]:
    """A frame of the demo clip: uint8 (480, 640, 4)."""
    with av.open(str(Path(assets.__file__).parent / "people.mp4")) as file:
        frame = next(f for number, f in enumerate(file.decode(video=0)) if number == FRAME)
        return np.ascontiguousarray(frame.to_ndarray(format="rgba"))

"""Marks tests by what they need and take; with --without-gl those fail that open OpenGL, or a window, unmarked.

Most are known by the fixtures that they use; whatever opens a context or a window by itself carries the marker by hand.
What is slow was measured.
conftest.py takes the hooks from here; `pytest -p tests.helpers.markers` does so elsewhere.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.helpers.durations import LEAST_S, function_of, known_durations
from texelflow.app import glfw_library
from texelflow.app.window import glfw_window as window
from texelflow.gpu_delegate.targets.gl import context

FIXTURES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "gl": frozenset({"_opened_context"}),
        "window": frozenset({"screen", "managed_screen"}),
    }
)
exhaustive = pytest.mark.exhaustive  # what takes long, while other tests try a part of it, or the like of it
on_both_apis = pytest.mark.parametrize("context", ["gl", "gles"], indirect=True)  # for tests that use that fixture
_OPTION = "--without-gl"
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
_NO_DRIVERS = {"__EGL_VENDOR_LIBRARY_FILENAMES": "/nonexistent"}  # of EGL, as on a machine without any


def one_in(count: int, names: str | Sequence[str], values: Iterable[Any], **options: Any) -> pytest.MarkDecorator:
    """As pytest.mark.parametrize: of every `count` values `make test` tries the first, `make exhaustive` all."""
    several = not isinstance(names, str) or "," in names
    rows = [_row(value, several, [exhaustive] if number % count else []) for number, value in enumerate(values)]
    return pytest.mark.parametrize(names, rows, **options)


def exhaustive_if(condition: bool, value: Any) -> Any:
    """A parameter's value, which `make test` leaves out on a condition."""
    return _row(value, False, [exhaustive] if condition else [])


def _row(value: Any, several: bool, marks: Sequence[pytest.MarkDecorator]) -> Any:
    if isinstance(value, type(pytest.param())):
        return pytest.param(*value.values, marks=[*value.marks, *marks], id=value.id)
    return pytest.param(*(value if several else [value]), marks=marks)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(_OPTION, action="store_true", help="fail tests that open OpenGL or a window")


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    known = known_durations()
    for item in items:
        used = set(getattr(item, "fixturenames", ()))
        for marker in (marker for marker, opening in FIXTURES.items() if used & opening):
            item.add_marker(marker)
        if function_of(item.nodeid) in known:
            item.add_marker("slow")
    items[:] = longest_first(items, known)


def longest_first(items: Iterable[pytest.Item], known: Mapping[str, float]) -> list[pytest.Item]:
    """The tests by their files, those that take long first: at the end no process waits long for another's last one."""
    seconds = defaultdict[Path, float](float)
    for item in items:
        if not item.get_closest_marker("exhaustive"):
            seconds[item.path] += known.get(function_of(item.nodeid), LEAST_S)
    return sorted(items, key=lambda item: (-seconds[item.path], item.path))


@pytest.fixture(autouse=True, scope="session")
def _no_devices(request: pytest.FixtureRequest) -> Iterator[None]:
    """With the option, this process and those that it starts have no OpenGL and no display; who asks here fails."""
    with pytest.MonkeyPatch.context() as patch:
        if request.config.getoption(_OPTION):
            for name in _DISPLAYS:
                patch.delenv(name, raising=False)
            for name, value in _NO_DRIVERS.items():
                patch.setenv(name, value)
            patch.setattr(context, "open_native", _refuse_opengl)
            for module in (glfw_library, window):
                patch.setattr(module, "load_glfw", _refuse_window)
        yield


def _refuse_opengl(*_: object) -> Any:
    pytest.fail("the test opens OpenGL, but is not marked gl: let it use the fixture context, or mark it")


def _refuse_window() -> Any:
    pytest.fail("the test opens a window, but is not marked window: let it use the fixture display, or mark it")

"""All that `import texelflow` offers has docstrings, and examples that run and show all that users see of it."""

import contextlib
import enum
import functools
import inspect
import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest

import texelflow
from tests.helpers.markers import exhaustive_if
from tests.model_files.frame_models import class_network
from texelflow.gpu_delegate.cpu.reference import load_interpreter_module

NAMES = [name for name in texelflow.__all__ if name != "__version__"]
CLASSES = [name for name in NAMES if inspect.isclass(getattr(texelflow, name))]
ERRORS = [name for name in CLASSES if issubclass(getattr(texelflow, name), Exception)]
SHOWN = [name for name in CLASSES if name not in ERRORS]
ON_GL = ("GpuDelegate", "Interpreter", "Program", "TensorRange")
LONG = ("Delegate", "Video", "video", "write")  # which measure, or make recordings, as others that are not long do, too
WITHOUT_EXAMPLE = {*ERRORS} - {"TexelflowError"}  # they are caught as that is
_BLOCK = re.compile(r"^(?: {4,}.*\n|\n)+", re.MULTILINE)


def examples_in(docstring: str | None) -> list[str]:
    """The blocks of a docstring that stand further right than its text, as programs."""
    text = inspect.cleandoc(docstring or "") + "\n"
    blocks = (textwrap.dedent(found[0]).strip() for found in _BLOCK.finditer(text))
    return [block for block in blocks if block]


def members_of(name: str) -> dict[str, Any]:
    """The methods, properties and fields of a class that users see, but for those of Python's own bases."""
    kind, found = getattr(texelflow, name), dict[str, Any]()
    for base in kind.__mro__:
        if base.__module__.startswith("texelflow"):
            fields = getattr(base, "__annotations__", {})
            found = {**dict.fromkeys(fields), **vars(base), **found}
    return {key: value for key, value in found.items() if not key.startswith("_")}


def programs_of(name: str) -> list[str]:
    """All examples of a name, of a class with those of its members."""
    thing = getattr(texelflow, name)
    docstrings = [thing.__doc__]
    if inspect.isclass(thing):
        docstrings += [inspect.getdoc(value) for value in (thing.__init__, *members_of(name).values())]
    return [example for docstring in docstrings for example in examples_in(docstring)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where examples run: with a small model and a short recording."""
    made = tmp_path_factory.mktemp("examples")
    (made / "model.tflite").write_bytes(class_network())
    texelflow.write(made / "talk.mp4", [*np.random.default_rng(0).integers(0, 256, (6, 48, 64, 3), np.uint8)])
    return made


@pytest.fixture
def given(folder: Path, frame_rgba: npt.NDArray[np.uint8], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that an example may use without having made them."""
    monkeypatch.chdir(folder)
    frame = np.ascontiguousarray(cv2.resize(frame_rgba, (160, 120))[..., :3])
    return {
        "texelflow": texelflow,
        "np": np,
        "os": os,
        "cv2": cv2,
        "frame": frame,
        "frames": [frame, frame[::-1]],
        "image": np.zeros((1, 27, 33, 3), np.float32),
        "Interpreter": load_interpreter_module().Interpreter,
    }


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_it_is_and_does(name: str) -> None:
    thing = getattr(texelflow, name)
    assert inspect.getdoc(thing)
    if not inspect.isclass(thing):
        return
    said = {key: value for key, value in members_of(name).items() if _is_to_be_explained(value)}
    assert [key for key, value in said.items() if not inspect.getdoc(value)] == []


def _is_to_be_explained(value: object) -> bool:
    return isinstance(value, FunctionType | property | staticmethod | classmethod | functools.cached_property)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.gl) if name in ON_GL else exhaustive_if(name in LONG, name)
        for name in NAMES
    ],
)
def test_its_examples_run(name: str, given: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    programs = programs_of(name)
    assert bool(programs) == (name not in WITHOUT_EXAMPLE)
    for number, program in enumerate(programs):
        code = compile(program, f"example {number + 1} of texelflow.{name}", "exec")
        if name == "VirtualCamera":  # a machine may have none
            with contextlib.suppress(texelflow.DeviceError):
                exec(code, given)
        else:
            exec(code, given)


@pytest.mark.parametrize("name", SHOWN)
def test_its_examples_show_all_that_users_see_of_it(name: str) -> None:
    text = "\n".join(programs_of(name))
    unshown = [key for key in members_of(name) if not re.search(rf"\.{key}\b", text)]
    allowed = ("unusable", "steps") if name == "Tensor" else ()
    assert [key for key in unshown if key not in allowed] == []


@pytest.mark.parametrize("name", NAMES)
def test_its_parameters_and_results_have_types(name: str) -> None:
    assert list(_untyped(name)) == []


def _untyped(name: str) -> Iterator[str]:
    thing = getattr(texelflow, name)
    if issubclass(thing, Exception | enum.Enum) if inspect.isclass(thing) else False:
        return
    functions = {name: thing} if not inspect.isclass(thing) else {"__init__": thing.__init__, **members_of(name)}
    for key, value in functions.items():
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if isinstance(function, FunctionType) and key != "self":
            signature = inspect.signature(function)
            parameters = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
            if signature.return_annotation is signature.empty or any(p.annotation is p.empty for p in parameters):
                yield key

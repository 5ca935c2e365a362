"""Runtimes whose structs are laid out as ours pass; every other one is refused in one line, whatever it does."""

import ctypes
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.helpers.markers import one_in
from tests.helpers.waiting import PATIENCE_S
from texelflow.gpu_delegate.base.disk_cache import DiskCache
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.cpu import runtime_trial
from texelflow.gpu_delegate.cpu.reference import load_interpreter_module
from texelflow.gpu_delegate.delegate import builtin_structs, runtime_check, structs
from texelflow.gpu_delegate.ops import fully_connected, lookup, normalization, pad, record


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own, and nothing that this process knows already."""
    monkeypatch.setenv("TEXELFLOW_CACHE", str(tmp_path))
    runtime_check._check_once.cache_clear()
    return DiskCache().folder / "runtimes"


def with_program(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(runtime_check, "_PROGRAM", program)


def with_structs(monkeypatch: pytest.MonkeyPatch, old: str, new: str, module: ModuleType = structs) -> None:
    """Have the child run with another text of structs.py, or of another module."""
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    assert text.count(old) == 1
    name = module.__name__
    program = (
        f"import sys, types\nmodule = types.ModuleType({name!r})\nmodule.__package__ = {name.rpartition('.')[0]!r}\n"
        f"sys.modules[{name!r}] = module\n"
        f"exec(compile({text.replace(old, new)!r}, 'structs.py', 'exec'), module.__dict__)\n"
    )
    with_program(monkeypatch, program + runtime_check._PROGRAM)


def test_this_runtime_passes_once(runtime: Any, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime_check.check_runtimes(runtime.__name__)
    (passed,) = cache.iterdir()
    runtime_check._check_once.cache_clear()
    with_program(monkeypatch, "raise SystemExit(3)")
    runtime_check.check_runtimes(runtime.__name__)
    for damage in (b"", b"works", passed.read_bytes()[:-1]):
        passed.write_bytes(damage)
        runtime_check._check_once.cache_clear()
        with pytest.raises(UnsupportedError, match="ends with exit code 3"):
            runtime_check.check_runtimes(runtime.__name__)


def test_a_cache_that_cannot_be_written(runtime: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("TEXELFLOW_CACHE", str(tmp_path / "file"))
    runtime_check.check_runtimes(runtime.__name__)


def test_another_library_or_other_structs_are_tried_anew(runtime: Any) -> None:
    ours = [*runtime_trial.struct_layouts(vars(structs)), *runtime_check._option_layouts()]
    names = [layout[0] for layout in ours]
    keys = {runtime_trial._key(runtime.__name__, version, ours) for version in ("1", "1", "2")}
    assert ours[names.index("TfLiteNode")][1] == ctypes.sizeof(structs.TfLiteNode)
    for name in ("TfLiteNode", "CONV_2D"):
        others = [layout for layout in ours if layout[0] != name]
        assert len(others) < len(ours)
        assert len({*keys, runtime_trial._key(runtime.__name__, "1", others)}) == 3


@one_in(
    3,
    ("old", "new"),
    [
        ('        ("bytes", ctypes.c_size_t),\n', ""),
        ('        ("allocation", ctypes.c_void_p),\n', ""),
        ('        ("temporaries", ctypes.c_void_p),\n', ""),
        ('        ("impl", ctypes.c_void_p),\n', ""),
        ('        ("nodes_to_replace", ctypes.c_void_p),\n', ""),
        ('        ("CopyToBufferHandle", CopyFunction),\n', ""),
        ('        ("Prepare", PrepareFunction),\n', '        ("x", ctypes.c_void_p), ("Prepare", PrepareFunction),\n'),
    ],
)
def test_every_wrong_layout_is_refused(old: str, new: str, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """The child crashes or differs: this process does neither."""
    name = load_interpreter_module().__name__
    with_structs(monkeypatch, old, new)
    with pytest.raises(UnsupportedError, match=r"GpuDelegate does not work with this .*; use tflite-runtime") as caught:
        runtime_check.check_runtimes(name)
    assert "\n" not in str(caught.value)
    assert not cache.exists(), "what fails is tried again"


@one_in(
    3,
    ("module", "old", "new", "op"),
    [
        (
            fully_connected,
            "KeepNumDims:b AsymmetricQuantizeInputs:b",
            "AsymmetricQuantizeInputs:b KeepNumDims:b",
            "FULLY_CONNECTED",
        ),
        (pad, '"Mode:e"', '"Mode:i"', "MIRROR_PAD"),
        (record, '"Padding:e StrideW:i StrideH:i"', '"Padding:e StrideH:i StrideW:i"', "CONV_2D"),
        (
            normalization,
            '"Radius:i Bias:f Alpha:f Beta:f"',
            '"Radius:i Bias:f Beta:f Alpha:f"',
            "LOCAL_RESPONSE_NORMALIZATION",
        ),
        (builtin_structs, "MOST_INTEGERS = 8", "MOST_INTEGERS = 6", "RESHAPE"),
        (lookup, "SeqDim:i BatchDim:i", "BatchDim:i SeqDim:i", "REVERSE_SEQUENCE"),
    ],
)
def test_every_other_place_of_an_option_is_refused(
    module: ModuleType, old: str, new: str, op: str, runtime: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_structs(monkeypatch, old, new, module)
    with pytest.raises(UnsupportedError, match=rf"GpuDelegate does not work with this .*: options of {op}: "):
        runtime_check.check_runtimes(runtime.__name__)


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "a trial of it ends with SIGSEGV"),
        ("print('no JSON')", "a trial of it ends with exit code 0"),
        ("import time; time.sleep(600)", "a trial of it ran longer than 1 s"),
    ],
)
def test_what_a_child_may_do(runtime: Any, program: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_program(monkeypatch, program)
    monkeypatch.setattr(runtime_trial, "_SECONDS", 1.0 if "sleep" in program else PATIENCE_S)
    with pytest.raises(UnsupportedError, match=line):
        runtime_check.check_runtimes(runtime.__name__)


@pytest.mark.parametrize("version", ["2.13.0", "1.1.9", "2.5.0.post1"])
def test_an_old_version_is_named(version: str, runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    package, oldest = runtime_trial.RUNTIMES[runtime.__name__]
    if runtime_trial.numbers_of(version) >= oldest:
        version = "0.9"
    monkeypatch.setattr(runtime_check, "version_of", lambda _: version)
    with pytest.raises(UnsupportedError, match=rf"{package} {version} is too old .* needs {oldest[0]}\.{oldest[1]}"):
        runtime_check.check_runtimes(runtime.__name__)


def test_whoever_asks_is_checked_alone(runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = list[str]()
    monkeypatch.setattr(runtime_check, "_check_once", checked.append)
    runtime_check.check_runtimes(runtime.__name__)
    assert checked == [runtime.__name__]
    runtime_check.check_runtimes("some.wrapper")
    assert set(checked) == {name for name in runtime_trial.RUNTIMES if name in sys.modules}

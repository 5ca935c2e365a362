"""LLVM's text becomes functions that run, and object code that later runs find in the cache."""

import ctypes
import sys
from pathlib import Path

import numpy as np
import pytest

from texelflow.gpu_delegate.base.disk_cache import DiskCache
from texelflow.gpu_delegate.base.errors import DeviceError, UsageError
from texelflow.gpu_delegate.targets.llvm import ir
from texelflow.gpu_delegate.targets.llvm.compiler import assembly, available, compile_module, native_target, object_code
from texelflow.gpu_delegate.targets.llvm.machine import AVX2, AVX512, NEON, CpuTarget

BINARY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)


def calls(outside: str) -> str:
    """f(x) is outside(x) + 1."""
    module = ir.Module()
    function = module.function("f", [("i32", "x")], "i32")
    got = function.call(outside, "i32", function.parameters[0])
    function.give_back(function.binary("add", got, ir.integer(1)))
    return module.text


def scales(lanes: int) -> str:
    """scale(floats, count): each times three plus itself, lanes at a time."""
    module = ir.Module()
    function = module.function("scale", [("ptr", "floats"), ("i32", "count")])
    floats, count = function.parameters
    kind = ir.vector(ir.FLOAT, lanes)
    three = function.splat(ir.number(3), lanes)
    with function.loop(ir.integer(0), count, lanes) as index:
        where = function.at(floats, index)
        value = function.load(kind, where)
        function.store(function.fma(value, three, value), where)
    function.give_back()
    return module.text


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path)


@pytest.fixture(scope="module")
def target() -> CpuTarget:
    assert available() == ""
    return native_target()


def test_code_of_this_machine_runs(target: CpuTarget, cache: DiskCache) -> None:
    code = compile_module(scales(target.lanes), target, cache=cache)
    values = np.arange(3 * target.lanes, dtype=np.float32)
    expected = values * 4
    scale = code.function("scale", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int))
    scale(values.ctypes.data, values.size)
    np.testing.assert_array_equal(values, expected)
    with pytest.raises(KeyError):
        code.address("other")
    code.close()


def test_outside_functions_are_those_given_and_belong_to_one_module(target: CpuTarget, cache: DiskCache) -> None:
    functions = [BINARY(lambda x: 2 * x), BINARY(lambda x: 3 * x)]
    codes = [
        compile_module(calls("outside"), target, {"outside": ctypes.cast(f, ctypes.c_void_p).value or 0}, cache)
        for f in functions
    ]
    assert [code.function("f", BINARY)(10) for code in codes] == [21, 31]
    assert len(cache.entries()) == 1
    with pytest.raises(DeviceError, match="LLVM cannot load what it made"):
        compile_module(calls("nowhere_to_be_found"), target, cache=cache)


@pytest.mark.parametrize("kept", [b"", b"\x7fELF nonsense", None])
def test_object_code_that_is_of_no_use_is_made_anew(kept: bytes | None, target: CpuTarget, cache: DiskCache) -> None:
    made = compile_module(calls("abs"), target, cache=cache)
    (entry,) = cache.entries()
    assert (entry.kind, entry.key.split()[0]) == ("objects", target.name)
    if kept is None:
        entry.path.write_bytes(entry.path.read_bytes()[:-1])
    else:
        cache.put(entry.kind, entry.key, kept)
    again = compile_module(calls("abs"), target, cache=cache)
    assert again.function("f", BINARY)(-4) == 5
    assert [cache.get(entry.kind, entry.key)] == [*again.objects] == [*made.objects]


def test_kept_object_code_is_loaded_and_counts_for_its_target_alone(target: CpuTarget, cache: DiskCache) -> None:
    other = object_code(calls("abs").replace(", 1\n", ", 2\n"), target)
    compile_module(calls("abs"), target, cache=cache)
    (entry,) = cache.entries()
    cache.put(entry.kind, entry.key, other)
    assert compile_module(calls("abs"), target, cache=cache).function("f", BINARY)(3) == 5
    narrower = CpuTarget(target.name, 4, 16, target.triple, target.cpu, "")
    assert compile_module(calls("abs"), narrower, cache=cache).function("f", BINARY)(3) == 4
    assert len(cache.entries()) == 2


@pytest.mark.parametrize(
    ("kind", "wide", "object_kind"), [(AVX512, "zmm", 62), (AVX2, "ymm", 62), (NEON, ".4s", 183)]
)  # fmt: skip
def test_vectors_are_as_wide_as_the_kind_and_products_are_fused(kind: CpuTarget, wide: str, object_kind: int) -> None:
    text = assembly(scales(kind.lanes), kind)
    fused = [line for line in text.splitlines() if "fmla" in line or "fmadd" in line]
    assert fused
    assert all(wide in line for line in fused)
    made = object_code(scales(kind.lanes), kind)
    assert (made[:4], int.from_bytes(made[18:20], "little")) == (b"\x7fELF", object_kind)


def test_text_that_is_none_and_a_missing_llvm_are_told(target: CpuTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match="LLVM does not take what was written for it"):
        object_code("define nonsense", target)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    assert "no LLVM" in available()
    assert "pip install llvmlite" in available()


def test_a_kind_of_cpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXELFLOW_CPU", "altivec")
    with pytest.raises(UsageError, match="TEXELFLOW_CPU=altivec"):
        available()

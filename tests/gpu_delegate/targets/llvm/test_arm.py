"""Code for 64-bit ARM: right results in an emulator, fused multiply-adds, and loops that suit a Cortex-A72."""

import re
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.gpu_delegate.targets.llvm.test_bytes import SCHEMES, quantized
from tests.gpu_delegate.targets.llvm.test_native_ops import RUN
from tests.helpers.arm import inner_loop, missing_tools, multiply_adds_a_cycle, run_on_arm
from tests.helpers.engine import on_cpu, worst
from tests.quantized.networks import Net
from tests.quantized.quantizer import quantized_twin
from tests.tables.op_vectors import REFUSED_THERE, assert_expected, values_of, vector_graph, vector_model
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.llvm.compiler import assembly
from texelflow.gpu_delegate.targets.llvm.ir import Module
from texelflow.gpu_delegate.targets.llvm.machine import NEON, CpuTarget
from texelflow.gpu_delegate.targets.llvm.native_program import compile_native

DOT_PRODUCTS = replace(NEON, cpu="cortex-a76", features="+dotprod")


@pytest.mark.skipif(bool(missing_tools()), reason=missing_tools())
def test_the_original_delegates_vectors_on_arm(tmp_path: Path) -> None:
    module = Module()
    programs = {name: compile_native(vector_graph(case), NEON, module=module) for name, case in RUN.items()}
    inputs = {name: [values_of(value) for value in case["inputs"]] for name, case in RUN.items()}
    found = run_on_arm(module, programs, inputs, tmp_path)
    assert len(found) == len(RUN) > 280
    for name, outputs in found.items():
        if RUN[name] in REFUSED_THERE:
            assert worst(outputs, on_cpu(vector_model(RUN[name]), inputs[name])) <= 1e-6
        else:
            assert_expected(RUN[name], outputs)


@pytest.mark.skipif(bool(missing_tools()), reason=missing_tools())
@pytest.mark.parametrize("target", [NEON, DOT_PRODUCTS], ids=["neon", "dot products"])
def test_8_bit_networks_on_arm(tmp_path: Path, target: CpuTarget) -> None:
    module = Module()
    cases = {scheme: quantized(scheme) for scheme in SCHEMES}
    programs = {name: compile_native(graph, target, module=module) for name, (graph, _, _) in cases.items()}
    inputs = {name: values for name, (_, values, _) in cases.items()}
    found = run_on_arm(module, programs, inputs, tmp_path, target)
    for name, (_, _, expected) in cases.items():
        assert all(np.array_equal(*pair) for pair in zip(found[name], expected, strict=True))


@cache
def listing_of(kind: str, target: CpuTarget = NEON) -> str:
    """The assembly of one convolution, of bytes where the target multiplies four at once."""
    m = Net(0)
    x = m.conv(m.image(40, 40, 3), 32)
    x = m.conv(x, 32, (1, 1) if kind == "pointwise" else (3, 3))
    m.output(m.conv(x, 3) if target is DOT_PRODUCTS else x)
    samples = [[np.random.default_rng(0).uniform(0, 1, (1, 40, 40, 3)).astype(np.float32)]]
    model = quantized_twin(m, samples) if target is DOT_PRODUCTS else m.build()
    return assembly(compile_native(read_model(model), target).text, target)


@pytest.mark.parametrize("kind", ["pointwise", "3x3"])
@pytest.mark.skipif(not shutil.which("llvm-mca"), reason="no llvm-mca: Debian's llvm has it")
def test_loops_over_bytes_keep_a_cortex_a76_busy(kind: str) -> None:
    """It begins two vectors of 16 products in a cycle."""
    loop = inner_loop(listing_of(kind, DOT_PRODUCTS))
    assert len(re.findall(r"sdot\s+v\d+\.4s, v\d+\.16b, v\d+\.4b\[\d\]", loop)) >= 0.9 * loop.count("sdot") > 12
    assert multiply_adds_a_cycle(loop, "cortex-a76") >= 1.0


@pytest.mark.parametrize("kind", ["pointwise", "3x3"])
def test_multiply_adds_are_fused_and_take_a_lane(kind: str) -> None:
    loop = inner_loop(listing_of(kind))
    assert len(re.findall(r"fmla\s+v\d+\.4s, v\d+\.4s, v\d+\.s\[\d\]", loop)) >= 0.9 * loop.count("fmla") > 32
    assert "fmul" not in loop


@pytest.mark.parametrize("kind", ["pointwise", "3x3"])
@pytest.mark.skipif(not shutil.which("llvm-mca"), reason="no llvm-mca: Debian's llvm has it")
def test_loops_keep_a_cortex_a72_busy(kind: str) -> None:
    """The loop of the paper on four channels at once gives 0.80 in the same model."""
    assert multiply_adds_a_cycle(inner_loop(listing_of(kind))) >= 0.9

"""Code for 64-bit ARM: right results in an emulator, fused multiply-adds, and loops that suit a Cortex-A72."""

import re
import shutil
from functools import cache
from pathlib import Path

import pytest

from tests.gpu_delegate.targets.llvm.test_native_ops import RUN
from tests.helpers.arm import inner_loop, missing_tools, multiply_adds_a_cycle, run_on_arm
from tests.model_files.sketch import Sketch
from tests.tables.op_vectors import assert_expected, values_of, vector_graph
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.llvm.compiler import assembly
from texelflow.gpu_delegate.targets.llvm.ir import Module
from texelflow.gpu_delegate.targets.llvm.machine import NEON
from texelflow.gpu_delegate.targets.llvm.native_program import compile_native


@pytest.mark.skipif(bool(missing_tools()), reason=missing_tools())
def test_the_original_delegates_vectors_on_arm(tmp_path: Path) -> None:
    module = Module()
    programs = {name: compile_native(vector_graph(case), NEON, module=module) for name, case in RUN.items()}
    inputs = {name: [values_of(value) for value in case["inputs"]] for name, case in RUN.items()}
    found = run_on_arm(module, programs, inputs, tmp_path)
    assert len(found) == len(RUN) > 280
    for name, outputs in found.items():
        assert_expected(RUN[name], outputs)


@cache
def listing_of(kind: str) -> str:
    """The assembly of one convolution."""
    m = Sketch(0)
    x = m.image(40, 40, 32)
    m.output(m.conv(x, 32, (1, 1) if kind == "pointwise" else (3, 3)))
    return assembly(compile_native(read_model(m.build()), NEON).text, NEON)


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

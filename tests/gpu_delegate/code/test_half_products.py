"""Products in half precision: which sums use them, valid source text, and how far results are off.

No driver here computes with halves. OpenGL ES runs the kernels with mediump, which Mesa's renderer takes for float32;
and every operation is rounded to a half by what is put in place of the conversions.
"""

from pathlib import Path

import numpy as np
import pytest

from tests.gpu_compilers.glslang import validate
from tests.gpu_delegate.targets.gl.test_fp16 import GATED
from tests.helpers.engine import on_gpu
from tests.helpers.markers import exhaustive
from tests.helpers.portable import needs_validator
from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.code.half_products import MOST_PRODUCTS, in_halves
from texelflow.gpu_delegate.code.vocabulary import (
    ZEROS,
    AddTo,
    Assign,
    Declare,
    ForEach,
    Halves,
    Lane,
    LoadFrom,
    Name,
    Operand,
    Operation,
    StoreTo,
    Weight,
    Widened,
)
from texelflow.gpu_delegate.device.device import HARDWARE
from texelflow.gpu_delegate.device.limits import HALF_EXTENSIONS
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context, open_context
from texelflow.gpu_delegate.targets.glsl import bindings, print_glsl
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.targets.glsl.shader import lines_of

A, V = Name("a", "vec4"), Name("v", "vec4")
PRODUCT = V * Weight(1)
DOT = Operation("add", (Lane(V, 0) * Weight(1), Lane(V, 1) * Weight(2)))
HALF = Name("h_a_0", "half4")
EMPTY, ADDED = Declare(HALF, Halves(ZEROS)), AddTo(HALF, Halves(PRODUCT))
LOAD = Declare(Name("w", "vec4"), LoadFrom("in0", 3))
ROUNDED = """
#define HALF float
#define HALF4 vec4
vec4 half4(vec4 v) { return vec4(unpackHalf2x16(packHalf2x16(v.xy)), unpackHalf2x16(packHalf2x16(v.zw))); }
float half1(float v) { return half4(vec4(v)).x; }
vec4 half_texel(uvec2 v) { return vec4(unpackHalf2x16(v.x), unpackHalf2x16(v.y)); }
"""
OUTER = 0.01  # of a result's magnitude: what a few roundings to 11 bits come to


class TestStatements:
    """Which are changed, and how."""

    def test_products_of_one_texel_are_added_as_halves_and_then_to_the_sum(self) -> None:
        assert in_halves([AddTo(A, DOT)]) == (AddTo(A, Widened(Halves(DOT))),)

    def test_single_products_have_a_sum_of_their_own_until_the_other_is_needed(self) -> None:
        store = StoreTo("out0", 0, A)
        assert in_halves([AddTo(A, PRODUCT), LOAD, AddTo(A, PRODUCT), store]) == (
            EMPTY, ADDED, LOAD, ADDED, AddTo(A, Widened(HALF)), store
        )  # fmt: skip

    def test_no_sum_of_halves_grows_long(self) -> None:
        found = in_halves([AddTo(A, PRODUCT)] * (2 * MOST_PRODUCTS + 1))
        assert sum(isinstance(each, AddTo) and each.name == A for each in found) == 3

    def test_loops_are_changed_inside_and_end_what_was_before(self) -> None:
        over, inside = ((Name("s", "int"), 3),), (EMPTY, ADDED, AddTo(A, Widened(HALF)))
        found = in_halves([AddTo(A, PRODUCT), ForEach(over, (AddTo(A, PRODUCT),))])
        assert found == (*inside, ForEach(over, inside))

    @pytest.mark.parametrize("other", [AddTo(A, Operation("add", (V, V))), AddTo(A, V), Assign(A, PRODUCT)])
    def test_other_sums_stay_as_they_are(self, other: AddTo | Assign) -> None:
        assert in_halves([other]) == (other,)


def test_a_device_without_it_refuses() -> None:
    with pytest.raises(DeviceError, match="no half-precision arithmetic"):
        compile_graph(read_model(GATED.model()), HARDWARE, CompileOptions(precision="fp16-arithmetic"))


@needs_validator
@pytest.mark.parametrize("extension", HALF_EXTENSIONS[:1])
@pytest.mark.parametrize("fetch", ["texture", "storage"])
def test_kernels_are_valid_with_an_extension(extension: str, fetch: str, tmp_path: Path) -> None:
    device = HARDWARE.with_limits(half_arithmetic=extension).with_tuning(weights_fetch=fetch, inputs_fetch=fetch)
    kernels = compile_graph(read_model(GATED.model()), device, CompileOptions(precision="fp16-arithmetic")).kernels
    assert all(f"#extension {extension} : require" in kernel.source for kernel in kernels)
    assert any("h_" in kernel.source and "HALF4" in kernel.source for kernel in kernels)
    sources = {("comp", kernel.source.replace("#version 430", "#version 450", 1)) for kernel in kernels}
    assert validate(sources, tmp_path) == []


@exhaustive
@pytest.mark.gl
def test_kernels_run_on_opengl_es() -> None:
    """Weights are halves, and are read as such; the renderer computes with float32."""
    graph = read_model(GATED.model())
    inputs = GATED.inputs(graph)
    device = HARDWARE.with_limits(half_arithmetic="mediump").with_tuning(weights_fetch="storage")
    with open_context(api="gles") as context:
        exact = on_gpu(context, compile_graph(graph, HARDWARE), inputs)[0]
        found = on_gpu(context, compile_graph(graph, device, CompileOptions(precision="fp16-arithmetic")), inputs)[0]
    assert 0 < np.abs(found - exact).max() < OUTER * np.abs(exact).max()


@exhaustive
def test_every_operation_may_round(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU that has nothing but halves for products and their sums."""

    def rounding(value: Operand) -> str:
        if isinstance(value, Operation):
            left, right = map(rounding, value.operands)
            return f"half4({left} {'*' if value.operation == 'multiply' else '+'} {right})"
        return print_glsl_halves(value)

    print_glsl_halves = print_glsl.halves
    monkeypatch.setattr(print_glsl, "halves", rounding)
    instead = {"half_arithmetic.glsl": ROUNDED.splitlines()}
    monkeypatch.setattr(bindings, "lines_of", lambda name: instead.get(name) or lines_of(name))
    graph = read_model(GATED.model())
    inputs = GATED.inputs(graph)
    exact = on_gpu(context, compile_graph(graph, HARDWARE), inputs)[0]
    stored = on_gpu(context, compile_graph(graph, HARDWARE, CompileOptions(precision="fp16")), inputs)[0]
    device = HARDWARE.with_limits(half_arithmetic="in place of it")
    computed = on_gpu(context, compile_graph(graph, device, CompileOptions(precision="fp16-arithmetic")), inputs)[0]
    assert np.abs(stored - exact).max() < np.abs(computed - exact).max() < OUTER * np.abs(exact).max()

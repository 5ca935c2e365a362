"""The vocabulary of kernels and the order of loads, executed by NumPy against TensorFlow Lite; how GLSL prints it."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.engine import Floats, on_cpu, on_gpu, worst
from tests.helpers.markers import one_in
from tests.helpers.numpy_kernels import Threads
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.code.schedule import loads_at_use
from texelflow.gpu_delegate.code.vocabulary import (
    X0,
    Y0,
    Declare,
    ForEach,
    Inside,
    LoadFrom,
    Name,
    Operand,
    Operation,
    Reserve,
    Splat,
    Statement,
    Sum,
    Tap,
    Vector,
    When,
    clamp,
    to_float,
    values_in,
)
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.device.tile import Tile
from texelflow.gpu_delegate.kernels.emit import Emitter
from texelflow.gpu_delegate.kernels.epilogue_reduction import GroupSums
from texelflow.gpu_delegate.model.layout import PHWC4, ceil_div, shape_of
from texelflow.gpu_delegate.model.packing import Blob, from_phwc4, phwc4
from texelflow.gpu_delegate.passes.pipeline import run_passes
from texelflow.gpu_delegate.plan.body import Body
from texelflow.gpu_delegate.plan.fusion import group_nodes
from texelflow.gpu_delegate.plan.tiling import choose_tile
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.targets.glsl.print_glsl import glsl, lines

Places = npt.NDArray[np.int64]

A, B = (Name(name, "int") for name in "ab")
V, W = (Name(name, "vec4") for name in "vw")


def window() -> bytes:
    m = Sketch(1)
    x = m.unary("RELU", m.depthwise(m.image(7, 9, 6), (5, 5), stride=(2, 1)))
    m.output(m.unary("HARD_SWISH", m.conv(x, 7)))
    return m.build()


def dense() -> bytes:
    m = Sketch(2)
    m.output(m.unary("RELU", m.conv(m.image(9, 10, 5), 13, (3, 3), stride=(2, 2))))
    return m.build()


def transposed() -> bytes:
    m = Sketch(3)
    m.output(m.unary("LOGISTIC", m.transpose(m.image(4, 5, 3), 5, (3, 3), (2, 2), "SAME")))
    return m.build()


def resized() -> bytes:
    m = Sketch(4)
    m.output(m.unary("RELU", m.resize(m.image(5, 4, 6), (10, 8), half_pixel_centers=True)))
    return m.build()


def pools() -> bytes:
    m = Sketch(5)
    m.output(m.pool("AVERAGE_POOL_2D", m.image(6, 7, 3), (3, 3), stride=(2, 1)))
    return m.build()


def parted() -> bytes:
    m = Sketch(8)
    m.output(m.unary("RELU", m.conv(m.image(5, 5, 70), 9, (3, 3), stride=(2, 2))))
    return m.build()


MODELS = (window, dense, transposed, resized, pools)


def emitted(model: bytes, device: Device) -> tuple[Emitter, Body, Tile]:
    """The code of a model that is one kernel."""
    graph, _ = run_passes(read_model(model))
    (body,) = group_nodes(graph, device).bodies
    tile = choose_tile(body, False, device.tuning)
    names = {tensor: f"in{k}" for k, tensor in enumerate(body.inputs)}
    emitter = Emitter(body, tile, names, {}, Blob(), dict.fromkeys(graph.tensors, PHWC4), GroupSums(body, tile, (), 0))
    emitter.emit()
    return emitter, body, tile


def threads_of(body: Body, tile: Tile, slices: int) -> dict[str, Places]:
    """Where the pixels and slices of each thread begin."""
    width, height = tile.area(body.domain)
    columns, rows = tile.groups(body.domain)
    layers = ceil_div(slices, tile.z_slices) if tile.z_slices else 1
    sides = (columns * tile.local[0], rows * tile.local[1], layers)
    x, y, z = (axis.ravel() for axis in np.meshgrid(*map(np.arange, sides), indexing="ij"))
    x0, y0, z0 = x, y * tile.rows, z * tile.z_slices
    if tile.leaves:
        inside = (x0 < width) & (y0 < height)
        return {"x0": x0[inside], "y0": y0[inside], "z0": z0[inside]}
    last = max(slices - tile.z_slices, 0)
    return {"x0": np.minimum(x0, width - 1), "y0": np.minimum(y0, height - tile.rows), "z0": np.minimum(z0, last)}


def in_numpy(model: bytes, device: Device, values: Floats, scheduled: bool) -> Floats:
    """What the kernel of a model computes, as NumPy reads its code; BHWC."""
    emitter, body, tile = emitted(model, device)
    (target,) = body.outputs
    shape = shape_of(body.graph.tensors[target])
    inputs = {"in0": phwc4(values[0]).reshape(-1, 4)}
    threads = Threads(threads_of(body, tile, shape.slices), inputs, emitter.blob.data())
    statements = (*emitter.preamble, *emitter.statements)
    threads.run(loads_at_use(statements) if scheduled else statements)
    stored = threads.stored["out0"]
    texels = np.stack([stored[place] for place in range(shape.texels)]).astype(np.float32)
    return from_phwc4(texels.reshape(shape.slices, shape.height, shape.width, 4), shape.channels)[None]


@pytest.mark.parametrize("device", [SOFTWARE, HARDWARE], ids=["software", "hardware"])
@pytest.mark.parametrize("make", MODELS)
def test_numpy_reads_kernels_as_tensorflow_lite_computes(make: Callable[[], bytes], device: Device) -> None:
    """GLSL is only one printer: nothing of a kernel is in its text alone, and the order of loads changes no bit."""
    model = make()
    shape = read_model(model).tensors[read_model(model).inputs[0]].shape
    values = np.random.default_rng(6).uniform(-1, 1, shape).astype(np.float32)
    found = in_numpy(model, device, values, scheduled=False)
    assert worst([found], on_cpu(model, [values])) < 1e-5
    assert np.array_equal(in_numpy(model, device, values, scheduled=True), found)


def blocks_of(statements: Iterable[Statement]) -> Iterator[list[Statement]]:
    """The statements of each block."""
    here = list(statements)
    yield here
    for each in here:
        if isinstance(each, ForEach | When):
            yield from blocks_of(each.body)


def loads_before_use(statements: Iterable[Statement]) -> list[int]:
    """For each load of a texel how many other loads stand between it and the first statement that needs it."""
    found = []
    for block in blocks_of(statements):
        for k, each in enumerate(block):
            if isinstance(each, Declare) and isinstance(each.value, LoadFrom | Tap):
                first = next(n for n in range(k + 1, len(block)) if each.name in values_in(block[n]))
                found.append(first - k - 1)
    return found


def test_loads_stand_where_they_are_used() -> None:
    emitter, _, _ = emitted(window(), HARDWARE)
    before, after = loads_before_use(emitter.statements), loads_before_use(loads_at_use(emitter.statements))
    assert len(before) == len(after) == 25
    assert max(before) == 24
    assert set(after) == {0}


def test_loads_that_need_others_follow_them() -> None:
    """A value that was looked up says where the next one lies."""
    index = Declare(A, Operation("int", (V,)))
    first, second = Declare(V, LoadFrom("in0", X0)), Declare(W, LoadFrom("in1", A))
    use = Declare(Name("t", "vec4"), V + W)
    other = Declare(B, X0 + 1)
    assert loads_at_use([first, other, index, second, use]) == (first, index, second, use, other)


@one_in(3, "make", [window, pools, dense, parted])
def test_neither_the_order_of_loads_nor_rolled_loops_change_a_bit(context: Context, make: Callable[[], bytes]) -> None:
    graph = read_model(make())
    values = np.random.default_rng(7).uniform(-1, 1, graph.tensors[graph.inputs[0]].shape).astype(np.float32)
    early, late, rolled = (
        compile_graph(graph, HARDWARE.with_tuning(**changes))
        for changes in ({"loads_at_use": False}, {}, {"unrolls": False})
    )
    sources = [compiled.kernels[0].source for compiled in (early, late, rolled)]
    assert sources[0].count("?") > 5
    assert make in (dense, parted) or "?" not in sources[1]  # taps of matrices keep their branches
    assert "gl_NumWorkGroups" in sources[2] or make is pools  # of one slice
    assert sources[2].replace(" * int(gl_NumWorkGroups.x > 0u)", "") == sources[1]
    wanted, *found = (on_gpu(context, compiled, [values])[0] for compiled in (early, late, rolled))
    for each in found:
        assert np.array_equal(each, wanted)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((X0 + 1) * 2 + Y0, "(x0 + 1) * 2 + y0"),
        (X0 - (Y0 - 1), "x0 - (y0 - 1)"),
        (X0 * (Y0 / 2), "x0 * (y0 / 2)"),
        (clamp(X0 + -1, 0, 5), "clamp(x0 + -1, 0, 5)"),
        (to_float(X0) * 0.5 - 0.5, "float(x0) * 0.5 - 0.5"),
        (Sum(((X0, 1), (Y0, -3)), -2), "(x0 + y0 * -3 - 2)"),
        (Inside(X0, 6), "uint(x0) < 6u"),
        (Vector((1.0, 1e-7, -0.1, 1e20)), "vec4(1.0, 1e-07, -0.1, 1e20)"),
        (Splat(-np.inf), "vec4(uintBitsToFloat(0xff800000u))"),
        (V + (W - V) * 0.25, "v + (w - v) * 0.25"),
        (Tap(V, Inside(A, 3), Splat(0.0)), "uint(a) < 3u ? v : vec4(0.0)"),
        (Tap(V, Inside(A, 3), Splat(0.0), branches=False), "mix(vec4(0.0), v, bvec4(uint(a) < 3u))"),
    ],
)
def test_glsl_of_values(value: Operand, text: str) -> None:
    """Brackets are where the meaning needs them; floats keep all their digits."""
    assert glsl(value) == text


def test_glsl_of_statements() -> None:
    body = (Declare(V, LoadFrom("in0", X0 + A)), Reserve((W, Name("u", "vec4"))))
    assert list(lines([ForEach(((A, 3), (B, 2)), (When(Inside(A, 2), body),))], 0)) == [
        "for (int a = 0; a < 3; ++a) for (int b = 0; b < 2; ++b) {",
        "    if (uint(a) < 2u) {",
        "        vec4 v = READ(in0, x0 + a);",
        "        vec4 w, u;",
        "    }",
        "}",
    ]

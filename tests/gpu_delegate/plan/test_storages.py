"""Tensors stored as bytes between kernels: the same numbers in a quarter of the memory."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.gpu_delegate.plan.memory.test_offsets import collisions
from tests.gpu_delegate.plan.test_fusion import check_kernels
from tests.gpu_delegate.plan.test_hazards import check_barriers
from tests.gpu_delegate.plan.test_views import check_places
from tests.helpers.engine import DEVICES, Floats, on_gpu, run
from tests.helpers.markers import one_in
from tests.model_files.whole_models import WholeSketch
from texelflow.app.verbs.inspect.memory_lines import memory_on_gpu
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.device.limits import ES_LIMITS
from texelflow.gpu_delegate.model.graph import Graph, Steps
from texelflow.gpu_delegate.model.layout import PHWC4, MapShape, Storage, shape_of
from texelflow.gpu_delegate.model.packing import from_memory, to_memory
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.storages import byte_storage
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.saving.saved_graph import restore_graph, save_graph
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import read_buffer
from texelflow.gpu_delegate.targets.gl.program_log import plan_lines
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, accesses_of, compile_graph
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.native_program import compile_native
from texelflow.gpu_delegate.tuning.isolated import sample

UNFUSED = CompileOptions(fuse=False)
STORED = {"inputs_fetch": "storage"}
LEAST_ES = replace(HARDWARE, limits=replace(ES_LIMITS, storage_block_bytes=1 << 27))  # no buffer textures


def every_way(channels: int, batch: int) -> WholeSketch:
    """Few ops, and every way in which kernels read and write; ranges with and without numbers below zero."""
    m = WholeSketch(channels)
    x = m.image(9, 11, 3, batch)
    a = m.whole(m.conv(x, channels, (3, 3), padding="SAME"), -128, 127)
    b = m.whole(m.conv(a, channels), 0, 255, 2.0**-2)
    c = m.whole(m.depthwise(b, (3, 3), padding="SAME"), -100, 155, 2.0**-2)
    d = m.known(m.pool("MAX_POOL_2D", m.whole(m.binary("ADD", c, a), -130, 3), (2, 2), stride=(2, 2)), -130, 3)
    e = m.whole(m.conv(d, channels), -130, 3, 2.0**-3)
    joined = m.known(m.joined(d, e), -130, 3)
    gate = m.whole(m.reduce("SUM", joined, (1, 2)), 0, 255, 2.0**-4)
    small = m.whole(m.binary("MUL", joined, gate), -7, 90, 2.0**-6)
    m.output(m.binary("MUL", m.conv(small, 5), m.constant([0.5])), m.binary("MUL", gate, m.constant([0.25])))
    return m


def whole_inputs(graph: Graph) -> list[Floats]:
    rng = np.random.default_rng(1)
    return [rng.integers(-9, 10, graph.tensors[t].shape).astype(np.float32) for t in graph.inputs]


def stored_as_bytes(compiled: CompiledGraph) -> set[int]:
    return {tensor for tensor in compiled.stored if compiled.storages[tensor].is_bytes}


def check_plan(compiled: CompiledGraph) -> None:
    check_places(compiled)
    check_kernels(compiled)
    check_barriers(accesses_of(compiled), compiled.barriers)
    assert collisions(compiled.records, compiled.plan) == []


CONFIGURATIONS = [
    (1, 1, DEVICES["software"], True),
    (3, 3, DEVICES["hardware"].with_tuning(**STORED), True),
    (4, 1, DEVICES["eager"], True),
    (5, 3, LEAST_ES, False),
    (13, 3, DEVICES["software"].with_tuning(**STORED), True),
]


@one_in(3, ("channels", "batch", "device", "fuse"), CONFIGURATIONS)
def test_all_tensors_equal_tensorflow_lites(
    context: Context, channels: int, batch: int, device: Device, fuse: bool
) -> None:
    check_all_tensors(context, channels, batch, device, fuse)


@pytest.mark.parametrize("context", ["gles"], indirect=True)
def test_opengl_es_has_bytes(context: Context) -> None:
    check_all_tensors(context, 5, 3, replace(HARDWARE, limits=context.limits), True)


def check_all_tensors(context: Context, channels: int, batch: int, device: Device, fuse: bool) -> None:
    sketch = every_way(channels, batch)
    graph, inputs = sketch.graph(), whole_inputs(sketch.graph())
    reference = Reference(read_model(sketch.build()), keep_all_tensors=True)
    wanted = reference.run(inputs)
    kept = compile_graph(graph, device, CompileOptions(fuse=fuse, keep_all=True))
    assert len(stored_as_bytes(kept)) > 4
    with Program(context, kept) as program:
        run(program, inputs)
        for tensor in kept.stored:
            if tensor in graph.tensors:
                np.testing.assert_array_equal(program.read(tensor), reference.tensor(tensor))
        for tensor in stored_as_bytes(kept):
            shape, low = shape_of(kept.graph.tensors[tensor]), kept.storages[tensor].low
            texels = read_buffer(context, program.range_of(tensor)).reshape(shape.slices, shape.pixels, 4)
            past = np.arange(4 * shape.slices).reshape(-1, 1, 4) >= shape.channels
            assert np.all(texels[np.broadcast_to(past, texels.shape)] == -low), "lanes past the last channel hold 0"
    compiled = compile_graph(graph, device, CompileOptions(fuse=fuse))
    check_plan(compiled)
    for found, right in zip(on_gpu(context, compiled, inputs), wanted, strict=True):
        np.testing.assert_array_equal(found, right)


def through_bytes(context: Context, values: Floats, low: int, high: int, device: Device) -> Floats:
    """Values written by one kernel as bytes and read by the next."""
    m = WholeSketch(0)
    m.output(m.unary("NEG", m.known(m.unary("NEG", m.input((1, 1, len(values) // 3, 3))), low, high)))
    compiled = compile_graph(m.graph(), device, UNFUSED)
    kinds = [compiled.storages[kernel.outputs[0]] for kernel in compiled.kernels]
    assert kinds == [Storage(value_bytes=1, low=min(low, 0)), PHWC4]
    with Program(context, compiled) as program:
        program._upload(program.input, -values)  # write refuses what is not finite
        program.run()
        return -program.read(compiled.graph.outputs[0]).reshape(-1)


WAYS = {"texture": SOFTWARE, "storage": SOFTWARE.with_tuning(**STORED), "packed": LEAST_ES}


@one_in(3, "device", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("low", [-128, -3, 0])
def test_every_number_survives_and_others_saturate(context: Context, low: int, device: Device) -> None:
    high = low + 255
    right = np.random.default_rng(0).permutation(np.arange(low, low + 256, dtype=np.float32))
    others = np.array([low - 1, high + 1, 1e9, -1e9, low - 0.4, high + 0.4], np.float32)
    given = np.concatenate([right, others])
    given = np.pad(given, (0, -len(given) % 3))
    found = through_bytes(context, given, low, high, device)
    np.testing.assert_array_equal(found, np.clip(np.floor(given + 0.5), low, high))
    for strange in (np.nan, np.inf, -np.inf):  # no number becomes something, and others stay
        beside = np.stack([right[:64], np.full(64, strange, np.float32), right[64:128]], 1)
        found = through_bytes(context, beside.reshape(-1), low, high, device).reshape(-1, 3)
        np.testing.assert_array_equal(found[:, [0, 2]], beside[:, [0, 2]])
        assert low <= found.min() <= found.max() <= high


def test_halves_are_for_networks_of_floats() -> None:
    """Sums of whole numbers are beyond them, and bytes take less."""
    graph, device = every_way(5, 1).graph(), HARDWARE.with_limits(half_arithmetic="mediump")
    exact = compile_graph(graph, HARDWARE)
    for precision in ("fp16", "fp16-arithmetic"):
        compiled = compile_graph(graph, device, CompileOptions(precision=precision))
        assert compiled.precision == "fp32"
        assert compiled.storages == exact.storages
        assert [kernel.source for kernel in compiled.kernels] == [kernel.source for kernel in exact.kernels]


class TestWhatIsStoredSo:
    def test_ranges(self) -> None:
        for low, high, wanted in ((-128, 127, -128), (3, 255, 0), (-9, -4, -9), (0, 255, 0), (-256, -1, None)):
            storage = byte_storage([Steps(low, high)])
            assert (storage and storage.low) == wanted
        assert byte_storage([Steps(0, 256)]) is None
        assert byte_storage([Steps(-5, 100), Steps(-100, 7)]) == Storage(value_bytes=1, low=-100)
        assert byte_storage([Steps(-128, 127), Steps(0, 255)]) is None
        assert byte_storage([Steps(0, 1), None]) is None

    def test_others_are_not(self) -> None:
        """What others access; what is no whole number; truth values and the like in networks of floats."""
        m = WholeSketch(0)
        x, y = m.image(4, 4, 4), m.known(m.image(4, 4, 4), -8, 8)
        wide, narrow = m.whole(x, -128, 128), m.whole(x, -128, 127)
        m.output(out := m.whole(m.binary("MUL", wide, y), -128, 127), m.binary("ADD", narrow, x))
        compiled = compile_graph(m.graph(), SOFTWARE, UNFUSED)
        assert stored_as_bytes(compiled) == {narrow}
        assert {compiled.storages[t] for t in (x, y, wide, out)} == {PHWC4}
        assert not stored_as_bytes(compile_graph(read_model(m.build()), SOFTWARE, UNFUSED))
        assert not stored_as_bytes(compile_graph(m.graph(), SOFTWARE.with_tuning(stores_bytes=False), UNFUSED))

    def test_the_cpus_own_code_has_bytes_in_maps_alone(self) -> None:
        program = compile_native(every_way(5, 1).graph(), native_target())
        shapes = {t: shape_of(program.graph.tensors[t]) for t, storage in program.storages.items() if storage.is_bytes}
        assert len(shapes) > 3
        assert not any(shape.is_vector for shape in shapes.values())

    def test_memory(self) -> None:
        graph = every_way(13, 1).graph()
        whole, small = (
            compile_graph(graph, device, UNFUSED) for device in (SOFTWARE.with_tuning(stores_bytes=False), SOFTWARE)
        )
        before = {record.tensor: record.size_bytes for record in whole.records}
        for record in small.records:
            part = 4 if small.storages[record.tensor].is_bytes else 1
            assert record.size_bytes * part == before[record.tensor]
        assert small.plan.total_bytes < whole.plan.total_bytes
        told = memory_on_gpu(small, SOFTWARE)
        assert told.wide_bytes == whole.plan.total_bytes == memory_on_gpu(whole, SOFTWARE).wide_bytes
        assert sum(told.stored.values()) == told.inner_bytes
        assert 4 * told.stored["bytes"] + told.stored["float32"] == memory_on_gpu(whole, SOFTWARE).inner_bytes
        kinds = Counter(line.split()[3] for line in [*plan_lines(small)][2:])
        assert kinds == {"bytes": len(stored_as_bytes(small)), "float32": len(before) - len(stored_as_bytes(small))}

    def test_a_saved_graph_keeps_it(self) -> None:
        graph = every_way(5, 1).graph()
        compiled = compile_graph(graph, HARDWARE)
        restored = restore_graph(save_graph(compiled), graph)
        assert restored is not None
        assert restored.storages == compiled.storages
        assert stored_as_bytes(restored)


class TestViews:
    """What lies in another tensor is stored as that is."""

    def plan(self, sketch: WholeSketch, alignment: int = 16) -> CompiledGraph:
        limits = {"texture_buffer_alignment_bytes": alignment, "storage_alignment_bytes": alignment}
        device = SOFTWARE.with_limits(**limits, uniform_alignment_bytes=alignment)
        compiled = compile_graph(sketch.graph(), device, CompileOptions(keep_all=True))
        check_plan(compiled)
        return compiled

    def joined(
        self, ranges: tuple[tuple[int, int], ...], side: int = 4, is_output: bool = False
    ) -> tuple[WholeSketch, list[int]]:
        """A concatenation of parts with these whole numbers, and its tensors, the whole last."""
        m = WholeSketch(0)
        x = m.image(side, side, 4)
        parts = [m.whole(m.conv(x, 4, (3, 3), padding="SAME"), low, high) for low, high in ranges]
        joined = m.joined(*parts)
        m.output(*([joined] if is_output else []), m.conv(joined, 3))
        return m, [*parts, joined]

    @pytest.mark.parametrize(
        ("ranges", "low"), [(((-128, 127), (-128, 127)), -128), (((-5, 100), (-100, 7)), -100), (((0, 9), (0, 1)), 0)]
    )
    def test_parts_lie_in_the_whole(self, context: Context, ranges: tuple[tuple[int, int], ...], low: int) -> None:
        sketch, tensors = self.joined(ranges)
        compiled = self.plan(sketch)
        assert set(compiled.views.inside) == set(tensors[:-1])
        assert {compiled.storages[t] for t in tensors} == {Storage(value_bytes=1, low=low)}
        self.check(context, sketch, compiled)

    @pytest.mark.parametrize(
        ("ranges", "side", "alignment", "is_output"),
        [
            (((-128, 127), (0, 255)), 4, 16, False),  # no byte holds the numbers of both
            (((-128, 127), (-128, 127)), 4, 256, False),  # the second would begin at byte 64
            (((-128, 127), (-128, 127)), 3, 16, False),  # at byte 36
            (((-128, 127), (-128, 127)), 4, 16, True),  # the whole is the caller's
        ],
    )
    def test_where_bytes_would_cost_the_view(
        self, context: Context, ranges: tuple[tuple[int, int], ...], side: int, alignment: int, is_output: bool
    ) -> None:
        sketch, tensors = self.joined(ranges, side, is_output)
        compiled = self.plan(sketch, alignment)
        assert set(compiled.views.inside) == set(tensors[:-1])
        assert {compiled.storages[t] for t in tensors} == {PHWC4}
        self.check(context, sketch, compiled)

    def check(self, context: Context, sketch: WholeSketch, compiled: CompiledGraph) -> None:
        inputs = whole_inputs(compiled.graph)
        wanted = Reference(read_model(sketch.build()), keep_all_tensors=True).run(inputs)
        for found, right in zip(on_gpu(context, compiled, inputs), wanted, strict=True):
            np.testing.assert_array_equal(found, right)


def test_in_the_place_of_an_input_with_other_numbers(context: Context) -> None:
    """Each is read and written as its own numbers, though both are the same bytes."""
    m = WholeSketch(0)
    x = m.resize(m.known(m.image(4, 4, 5), -128, 127), (32, 32), "RESIZE_NEAREST_NEIGHBOR")
    y = m.binary("ADD", x, m.constant([28]))
    m.output(m.reduce("SUM", y, (1, 2)))
    graph = m.graph()
    compiled = compile_graph(graph, SOFTWARE, UNFUSED)
    check_plan(compiled)
    assert compiled.in_place == {y: x}
    assert [compiled.storages[t].low for t in (x, y)] == [-128, -100]
    inputs = whole_inputs(graph)
    wanted = Reference(read_model(m.build())).run(inputs)
    np.testing.assert_array_equal(on_gpu(context, compiled, inputs)[0], wanted[0])


def test_floats_of_bytes_are_made_by_what_reads_them(context: Context) -> None:
    """Around what ADD skips: half of x is no output of the kernel of x, nor one of its own."""
    m = WholeSketch(0)
    x = m.whole(m.conv(m.image(8, 8, 3), 8, (3, 3), padding="SAME"), -128, 127)
    half = m.binary("MUL", x, m.constant([0.5]))
    y = m.whole(m.depthwise(x, (3, 3), padding="SAME"), -128, 127)
    m.output(m.conv(m.whole(m.binary("ADD", half, y), -128, 127), 3, (3, 3), padding="SAME"))
    graph, inputs = m.graph(), whole_inputs(m.graph())
    usual, compiled = (compile_graph(graph, SOFTWARE.with_tuning(stores_bytes=way)) for way in (False, True))
    assert half in usual.stored
    assert half not in compiled.stored
    assert len(compiled.kernels) == len(usual.kernels)
    wanted = Reference(read_model(m.build())).run(inputs)
    np.testing.assert_array_equal(on_gpu(context, compiled, inputs)[0], wanted[0])


@pytest.mark.parametrize("low", [-128, 0, -3])
def test_memory_and_back(low: int) -> None:
    shape, storage = MapShape(1, 3, 5, 6), Storage(value_bytes=1, low=low)
    values = np.random.default_rng(0).integers(low, low + 256, (3, 5, 6)).astype(np.float32)
    data = to_memory(values, storage)
    assert data.nbytes == storage.size_bytes(shape)
    np.testing.assert_array_equal(from_memory(data.reshape(-1).view(np.uint8), shape, storage), values)
    far = np.array([[[low - 9, low + 999, 0, -1e9]]], np.float32)
    found = from_memory(to_memory(far, storage).reshape(-1).view(np.uint8), MapShape(1, 1, 1, 4), storage)
    np.testing.assert_array_equal(found, np.clip(far, low, low + 255))


def test_kernels_are_timed_with_numbers_that_they_take() -> None:
    graph = every_way(5, 1).graph()
    tensor = next(t for t, steps in ((t, graph.tensors[t].steps) for t in graph.tensors) if steps == Steps(-130, 3))
    values = sample(graph, tensor)
    assert {*np.unique(values)} <= {*range(-130, 4)}
    assert float(np.ptp(values.astype(np.float32))) > 100

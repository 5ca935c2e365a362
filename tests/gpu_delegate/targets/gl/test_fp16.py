"""Halves between kernels: half the bytes, values within half precision, and values that no half can hold."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pytest

from tests.app.verbs.check.test_check import compile_instead
from tests.generators.profiles import random_graph
from tests.gpu_delegate.plan.memory.test_offsets import collisions
from tests.gpu_delegate.plan.test_fusion import check_kernels
from tests.gpu_delegate.plan.test_hazards import check_barriers
from tests.gpu_delegate.targets.gl.test_random_networks import check_network, choices
from tests.helpers.commands import Command
from tests.helpers.engine import Floats, on_gpu
from tests.helpers.markers import exhaustive, one_in
from tests.model_files.model_builder import SELFIE, selfie_like
from tests.model_files.sketch import GraphCase, Sketch
from tests.op_table.__main__ import is_custom
from tests.tables.graph_cases import RUN
from texelflow import assets
from texelflow.app.console import Console
from texelflow.app.frame.inference.masks import LIMITS, compare_masks
from texelflow.app.verbs.check.check_model import Subject, check_model
from texelflow.gpu_delegate.cases.op_case import OpCase
from texelflow.gpu_delegate.cases.table import cases_of
from texelflow.gpu_delegate.cpu.compare import compare, first_divergence, times_rounded
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.model.graph import Attributes, Graph, Node, Tensor
from texelflow.gpu_delegate.model.layout import PHWC4, PHWC4_HALVES, PLAIN, MapShape, Precision, Storage
from texelflow.gpu_delegate.model.packing import from_memory, to_memory
from texelflow.gpu_delegate.ops.cast import Cast
from texelflow.gpu_delegate.ops.registry import OPS, SUPPORTED_OPS
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.half_packing import are_nearest, packs_halves, trial_values
from texelflow.gpu_delegate.targets.gl.runtime import Program, device_of
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, accesses_of, compile_graph
from texelflow.gpu_delegate.targets.glsl.roofline import cost_of

CLIP = Path(assets.__file__).parent / "people.mp4"
LARGEST_HALF, LEAST_HALF = 65504.0, 2.0**-24
PRECISIONS: tuple[Precision, ...] = ("fp32", "fp16")


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def inside(graph: Graph) -> Graph:
    """The graph with its inputs and outputs behind an op, so that what lies between is stored as halves."""
    tensors, nodes = dict(graph.tensors), list[Node]()

    def made(op: str, x: int, attributes: Attributes) -> int:
        dtype = "float32" if op == "CAST" else tensors[x].dtype
        y = max(tensors) + 1
        tensors[y] = Tensor(y, f"t{y}", tensors[x].shape, dtype)
        nodes.append(Node(op, (x,), (y,), attributes, len(nodes)))
        return y

    behind, inputs = dict[int, int](), list[int]()
    for x in graph.inputs:
        if tensors[x].dtype == "float32":
            first = replace(tensors[x], index=max(tensors) + 1, name=f"t{max(tensors) + 1}")
            tensors[first.index] = first
            nodes.append(Node("NEG", (first.index,), (x,), OPS["NEG"].example.attributes, len(nodes)))
            inputs.append(first.index)
        else:
            inputs.append(x)
    nodes += (replace(node, index=len(nodes) + k) for k, node in enumerate(graph.nodes))
    for y in graph.outputs:
        dtype = tensors[y].dtype
        floats = y if dtype == "float32" else made("CAST", y, Cast(dtype, "float32"))
        behind[y] = made("NEG", floats, OPS["NEG"].example.attributes)
    outputs = tuple(behind[y] for y in graph.outputs)
    return replace(graph, tensors=MappingProxyType(tensors), nodes=tuple(nodes), inputs=tuple(inputs), outputs=outputs)


def wrong(context: Context, compiled: CompiledGraph, reference: Reference, inputs: Sequence[Floats]) -> str | None:
    """The first tensor that is further from the CPU's than its halves explain."""
    with Program(context, compiled) as program:
        first = first_divergence(compare(program, reference, inputs))
    return None if first is None else f"{first.operator}: {first.max_error:.2g}, allowed {first.limit:.2g}"


# Halves cannot hold the 64th power of a value near 100, less 100; exp() makes much of what they round off near 100, and
# products of many values of each; what they round off may be all that lies between two integers, true and false, or the
# places of two values.
OUT_OF_REACH = ("ARG_MAX", "ARG_MIN", "TOPK_V2", "REDUCE_PROD")
STEPS = ("CEIL", "FLOOR", "FLOOR_DIV", "FLOOR_MOD", "ROUND", "CAST", "SIN", "COS")  # that jump, or turn, between halves
BEYOND = ("padding lanes that overflow", ", large", "far", "integers", "int32", "truth values")
APART = ("folded", "state")  # roles of ops that no kernel computes, as test_op_table.py finds by compiling each
IN_REACH = [
    op
    for op in SUPPORTED_OPS
    if op not in (*OUT_OF_REACH, "QUANTIZE", "DEQUANTIZE") and OPS[op].role not in APART and not is_custom(op)
]
TABLE = [case for op in IN_REACH for case in cases_of(op) if not any(what in case.what for what in BEYOND)]
GRAPHS = [case for case in RUN if case.op not in OUT_OF_REACH and not any(what in case.what for what in BEYOND)]
FIRSTS = {case.op: case for case in reversed(TABLE) if case.what != "example"}.values()
QUICK = [*FIRSTS, *TABLE[40::80], *GRAPHS[::6]]


@one_in(14, "case", QUICK, ids=lambda case: case.name)
def test_ops_agree_with_tensorflow_lite(context: Context, case: OpCase | GraphCase) -> None:
    alone = case.graph()
    graph, inputs = inside(alone), case.inputs(alone)
    reference = Reference(graph, keep_all_tensors=True)
    if case.op in STEPS:
        inputs = [each.astype(np.float16).astype(each.dtype) for each in inputs]
    plans = [compile_graph(graph, SOFTWARE, CompileOptions(fuse=False, keep_all=True, precision="fp16"))]
    plans.append(compile_graph(graph, HARDWARE, CompileOptions(keep_all=True, precision="fp16")))
    assert PHWC4_HALVES in {plans[0].storages[tensor] for tensor in plans[0].stored}
    assert [wrong(context, plan, reference, inputs) for plan in plans] == [None, None]


def gated(m: Sketch) -> int:
    """Few ops, and every way in which kernels read and write."""
    x = m.unary("HARD_SWISH", m.conv(m.image(9, 10, 3), 5, (3, 3)))
    wide = m.unary("RELU", m.depthwise(m.conv(x, 13, activation="RELU"), (3, 3)))
    gate = m.unary("LOGISTIC", m.conv(m.unary("RELU", m.conv(m.mean(wide), 3)), 13))
    x = m.binary("ADD", m.conv(m.binary("MUL", wide, gate), 5), x)
    return m.unary("LOGISTIC", m.transpose(m.resize(x, (18, 20)), 1, (2, 2), (2, 2), "SAME", custom=True))


GATED = GraphCase("gated", "bottleneck", gated)


@pytest.mark.gl
@one_in(3, "op", ["RELU", "HARD_SWISH", "MUL"])
def test_a_wrong_op_is_named(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = read_model(GATED.model())
    node = next(node for node in graph.nodes if node.op == op)
    other = "ADD" if op == "MUL" else "ABS"
    altered = replace(graph, nodes=tuple(replace(n, op=other) if n is node else n for n in graph.nodes))
    compile_instead(altered, monkeypatch)
    subject = Subject("network", graph, (0, 1))
    options = CompileOptions(fuse=False, precision="fp16")
    figures, code = check_model(subject, None, Console(quiet=True), options)
    assert code == 1
    assert figures["first_divergence"]["operator"] == node.index


# That mix float32 and halves, textures and storage buffers in one kernel.
NETWORKS = (2, 5, 9, 34)


@one_in(4, "seed", NETWORKS)
def test_random_networks_agree_and_share_memory(context: Context, seed: int) -> None:
    check_network(context, seed, "fp16", random_graph(seed, "segmentation"))


@one_in(5, "seed", range(20))
def test_kernels_barriers_and_memory(seed: int) -> None:
    graph = read_model(random_graph(seed, "segmentation").build())
    for device, fuse in choices(seed).values():
        compiled = compile_graph(graph, device, CompileOptions(fuse=fuse, precision="fp16"))
        check_kernels(compiled)
        check_barriers(accesses_of(compiled), compiled.barriers)
        assert collisions(compiled.records, compiled.plan) == []
        assert all(offset % device.offset_alignment_bytes == 0 for offset in compiled.plan.offsets.values())


@exhaustive
@one_in(2, "texels", [0, 90])
def test_halves_in_storage_buffers(context: Context, texels: int) -> None:
    """Where no tensor, or no large one, fits into a buffer texture; the values are the same."""
    graph = read_model(GATED.model())
    inputs = GATED.inputs(graph)
    usual, stored = (
        compile_graph(graph, HARDWARE.with_limits(texture_buffer_texels=n), CompileOptions(precision="fp16"))
        for n in (1 << 16, texels)
    )
    assert any("from_halves(in0_texels[i])" in kernel.source for kernel in stored.kernels)
    assert not any("from_halves(in" in kernel.source for kernel in usual.kernels)
    assert on_gpu(context, stored, inputs)[0].tobytes() == on_gpu(context, usual, inputs)[0].tobytes()


def through_halves(context: Context, values: Floats, device: Device) -> Floats:
    """Values written by one kernel as halves and read by the next."""
    sketch = Sketch(0)
    sketch.output(sketch.unary("NEG", sketch.unary("NEG", sketch.input((1, 1, len(values), 1)))))
    compiled = compile_graph(read_model(sketch.build()), device, CompileOptions(fuse=False, precision="fp16"))
    assert [compiled.storages[kernel.outputs[0]] for kernel in compiled.kernels] == [PHWC4_HALVES, PLAIN]
    with Program(context, compiled) as program:
        program._upload(program.input, values)  # write refuses what is not finite
        program.run()
        return program.read(compiled.graph.outputs[0]).reshape(-1)


PACKED = SOFTWARE.with_limits(packs_halves=True)


@pytest.mark.parametrize(
    "device", [SOFTWARE, SOFTWARE.with_limits(texture_buffer_texels=0), PACKED], ids=["texture", "storage", "packed"]
)
class TestValues:
    """What becomes of single values between two kernels."""

    def test_every_half_survives(self, context: Context, device: Device) -> None:
        halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
        halves = halves[np.isfinite(halves)][:: 1 if device.limits.texture_buffer_texels else 17]
        found = through_halves(context, halves, device)
        np.testing.assert_array_equal(found, halves)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(halves))

    def test_what_is_too_large_saturates(self, context: Context, device: Device) -> None:
        large = np.array([65505, 65519, 65520, 65536, 1e9, 3e38, np.inf], np.float32)
        found = through_halves(context, np.concatenate([large, -large]), device)
        np.testing.assert_array_equal(found, np.repeat([LARGEST_HALF, -LARGEST_HALF], len(large)))

    def test_what_is_no_number_stays_so(self, context: Context, device: Device) -> None:
        found = through_halves(context, np.array([np.nan, 1, -np.nan], np.float32), device)
        np.testing.assert_array_equal(np.isnan(found), [True, False, True])

    def test_others_become_the_nearest(self, context: Context, device: Device) -> None:
        rng = np.random.default_rng(0)
        values = (rng.uniform(-2, 2, 4000) * 2.0 ** rng.integers(-30, 15, 4000)).astype(np.float32)
        found = through_halves(context, values, device)
        assert np.all(np.abs(found - values) <= np.maximum(2.0**-11 * np.abs(values), LEAST_HALF / 2))
        assert np.any(found != values)


class TestPacking:
    """Which drivers' own conversion kernels use."""

    @pytest.mark.usefixtures("llvmpipe")
    def test_mesas_renderer_rounds_as_kernels_need_it(self, context: Context) -> None:
        """Values of PACKED above show that it does; a family that does not want it is not asked."""
        assert packs_halves(context)
        assert not device_of(context, "fp16").limits.packs_halves
        assert device_of(context).limits == context.limits

    def test_kernels_use_it_where_it_was_found_right(self) -> None:
        graph = read_model(GATED.model())
        for packs, function in ((True, "pack_halves(v)"), (False, "to_halves(v)")):
            kernels = compile_graph(
                graph, HARDWARE.with_limits(packs_halves=packs), CompileOptions(precision="fp16")
            ).kernels
            assert any(f"= {function}" in kernel.source for kernel in kernels)

    @pytest.mark.parametrize(
        ("convert", "right"),
        [
            (lambda v: np.clip(v, -LARGEST_HALF, LARGEST_HALF).astype(np.float16), True),
            (lambda v: v.astype(np.float16), False),  # infinities
            (lambda v: np.nan_to_num(np.clip(v, -LARGEST_HALF, LARGEST_HALF)).astype(np.float16), False),
            (
                lambda v: np.where(np.abs(v) < 2.0**-14, 0 * v, np.clip(v, -LARGEST_HALF, LARGEST_HALF)).astype(
                    np.float16
                ),
                False,
            ),
            (lambda v: np.clip(v * (1 + 2.0**-23), -LARGEST_HALF, LARGEST_HALF).astype(np.float16), False),  # ties
            (lambda v: _towards_zero(np.clip(v, -LARGEST_HALF, LARGEST_HALF)), False),
        ],
        ids=["right", "overflows", "loses NaN", "flushes", "ties away from zero", "truncates"],
    )
    def test_other_conversions_are_found_out(
        self, convert: Callable[[Floats], npt.NDArray[np.float16]], right: bool
    ) -> None:
        values = trial_values()
        with np.errstate(over="ignore", invalid="ignore"):
            assert are_nearest(values, convert(values)) == right


def _towards_zero(values: Floats) -> npt.NDArray[np.float16]:
    halves = values.astype(np.float16)
    return np.where(np.abs(halves.astype(np.float32)) > np.abs(values), np.nextafter(halves, np.float16(0)), halves)


@pytest.mark.parametrize("storage", [PHWC4, PHWC4_HALVES, PLAIN], ids=["PHWC4", "halves", "plain"])
def test_memory_and_back(storage: Storage) -> None:
    shape = MapShape(1, 3, 5, 1 if storage == PLAIN else 6)
    values = np.random.default_rng(0).integers(-9, 9, (shape.height, shape.width, shape.channels)).astype(np.float32)
    data = to_memory(values, storage)
    assert data.nbytes == storage.size_bytes(shape)
    np.testing.assert_array_equal(from_memory(data.reshape(-1).view(np.uint8), shape, storage), values)


def test_halves_in_memory_saturate_too() -> None:
    values = np.array([[[1e9, -np.inf, np.nan, 65520]]], np.float32)
    wanted = np.array([LARGEST_HALF, -LARGEST_HALF, np.nan, LARGEST_HALF], np.float16)
    np.testing.assert_array_equal(to_memory(values, PHWC4_HALVES).reshape(-1), wanted)


@one_in(4, "fuse", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("device", [SOFTWARE, HARDWARE], ids=["software", "hardware"])
def test_half_the_bytes_by_count(device: Device, fuse: bool) -> None:
    graph = read_model(selfie_like(0, SELFIE))
    whole, half = (
        compile_graph(graph, device, CompileOptions(fuse=fuse, precision=precision)) for precision in PRECISIONS
    )
    outer = {*whole.graph.inputs, *whole.graph.outputs}
    sizes = {record.tensor: record.size_bytes for record in whole.records}
    assert len(sizes) > 30
    for record in half.records:
        assert record.size_bytes * (1 if record.tensor in outer else 2) == sizes[record.tensor]
    assert half.plan.total_bytes < 0.7 * whole.plan.total_bytes
    for ours, theirs in zip(half.kernels, whole.kernels, strict=True):
        inside = not outer & {*ours.inputs, *ours.outputs}
        moved, before = cost_of(half, ours), cost_of(whole, theirs)
        assert moved.macs == before.macs
        assert moved.written_bytes * (2 if inside else 1) <= before.written_bytes
        if inside:
            others = math.prod(ours.grid) - 1  # work-groups, each of which may read weights of vectors again
            weights_bytes = 2 * moved.read_bytes - before.read_bytes
            again_bytes, rest = divmod(weights_bytes - ours.weights.nbytes, max(others, 1))
            assert rest == 0
            assert 0 <= again_bytes <= (ours.weights.nbytes if others else 0)
            assert ours.weights.nbytes == theirs.weights.nbytes, "they stay float32"


def test_rounding_is_counted_on_the_longest_way() -> None:
    m = Sketch(0)
    x = m.unary("NEG", m.image(3, 4, 5))
    y = m.unary("ABS", m.unary("NEG", x))
    m.output(m.binary("ADD", x, y))
    graph = read_model(m.build())
    counts = [
        list(times_rounded(compile_graph(graph, SOFTWARE, CompileOptions(fuse=False, precision=precision))).values())
        for precision in PRECISIONS
    ]
    assert counts == [[0, 0, 0, 0, 0], [0, 1, 2, 3, 3]]


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "gated.tflite"
    path.write_bytes(GATED.model())
    return path


class TestVerbs:
    """--precision fp16 on the command line. One real model, since each takes seconds to compile in each precision."""

    @exhaustive
    @pytest.mark.gl
    def test_check_of_a_clip(self, texelflow: Command) -> None:
        """Masks are further off than float32 may be, and outlines nearly the same."""
        options = ("--from", 60, "--to", 63, "--model", "selfie-landscape", "--precision", "fp16", "--json")
        result = texelflow("check", CLIP, *options)
        figures = json.loads(result.out)
        assert (result.code, figures["precision"], figures["frames"]) == (0, "fp16", 4)
        assert LIMITS["fp32"].error < figures["max_error"] < LIMITS["fp16"].error
        assert LIMITS["fp16"].iou <= figures["min_iou"] <= figures["iou"]

    @pytest.mark.gl
    def test_check_beyond_the_limits(
        self, model_file: Path, texelflow: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        meaning = ("--model", model_file, "--input-range", "0,1", "--activation", "none", "--channel", 0)
        options = ("--from", 60, "--to", 60, "--precision", "fp16", "--tolerance", "1e-6", "--json")
        result = texelflow("check", CLIP, *meaning, *options)
        figures = json.loads(result.out)
        assert (result.code, figures["failed_frames"]) == (1, [60])
        assert "the network agrees" in figures["verdict"], "within what halves allow"
        assert (tmp_path / "texelflow-check.png").is_file()

    @pytest.mark.gl
    def test_check_of_a_model(self, model_file: Path, texelflow: Command) -> None:
        result = texelflow("check", model_file, "--precision", "fp16", "--json")
        figures = json.loads(result.out)
        assert (result.code, figures["precision"], figures["first_divergence"]) == (0, "fp16", None)
        assert "stored as halves" in figures["verdict"]
        assert max(tensor["max_error"] for tensor in figures["tensors"]) > 1e-4

    @exhaustive
    @pytest.mark.gl
    def test_bench_of_frames(self, texelflow: Command, tmp_path: Path) -> None:
        masks = []
        for taken in (("--backend", "cpu"), ("--precision", "fp16")):
            options = ("--runs", 1, "--warmup", 0, "--masks", tmp_path / "m.npy", "--force", "--json")
            result = texelflow("bench", "frame", "--model", "selfie-landscape", *options, *taken)
            assert (result.code, json.loads(result.out)[taken[0].strip("-")]) == (0, taken[1])
            masks.append(np.load(tmp_path / "m.npy"))
        differences = [compare_masks(number, *pair) for number, pair in enumerate(zip(*masks, strict=True))]
        assert len(differences) == 8
        for difference in differences:
            assert LIMITS["fp32"].error < difference.max_error < LIMITS["fp16"].error
            assert difference.iou >= LIMITS["fp16"].iou
            assert difference.union > 1000

    @pytest.mark.gl
    def test_bench_of_a_model(self, model_file: Path, texelflow: Command) -> None:
        figures = json.loads(texelflow("bench", "model", model_file, "--runs", 1, "--precision", "fp16", "--json").out)
        assert figures["precision"] == "fp16"

    @exhaustive
    @pytest.mark.gl
    def test_inspect(self, texelflow: Command) -> None:
        arguments = ("inspect", "selfie", "--no-peaks", "--json", "--precision")
        whole, half = (json.loads(texelflow(*arguments, precision).out) for precision in PRECISIONS)
        assert (half["precision"], whole["precision"]) == ("fp16", "fp32")
        memory, before = half["memory"], whole["memory"]
        assert memory["inner_bytes"] * 2 == before["inner_bytes"]
        assert memory["outer_bytes"] == before["outer_bytes"]
        assert memory["planned_bytes"] < before["planned_bytes"]
        assert sum(d["moved_bytes"] for d in half["dispatches"]) < 0.7 * sum(
            d["moved_bytes"] for d in whole["dispatches"]
        )

    @pytest.mark.parametrize(
        "verb", [("bench", "frame"), ("bench", "model"), ("check", "selfie"), ("inspect", "selfie")]
    )
    def test_what_is_no_precision(self, verb: tuple[str, ...], texelflow: Command) -> None:
        assert "one of fp32, fp16, fp16-arithmetic, bf16 is needed" in texelflow(*verb, "--precision", "fp8").complaint

    def test_the_cpu_has_no_choice(self, texelflow: Command) -> None:
        complaint = texelflow("bench", "frame", "--backend", "cpu", "--precision", "fp16").complaint
        assert "--precision fp16 is for the GPU" in complaint

"""`texelflow check`: it passes where GPU and CPU agree, and names the op where they do not."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import cv2
import numpy as np
import pytest

from tests.helpers.markers import exhaustive, one_in
from tests.model_files.model_builder import ODD_BLOCKS, ModelBuilder, selfie_like
from tests.quantized.networks import Net
from tests.quantized.quantizer import hybrid_twin
from texelflow import assets
from texelflow.app.cli import main
from texelflow.app.console import Console
from texelflow.app.frame.inference.masks import MaskDifference, MaskLimits, compare_masks, failures, save_picture
from texelflow.app.media.sources import FileSource
from texelflow.app.models.model_loading import SegmentationModel, load_segmentation
from texelflow.app.models.spec import SpecOptions
from texelflow.app.verbs.check import check_model as check_model_verb
from texelflow.app.verbs.check.check_clip import check_clip
from texelflow.app.verbs.check.check_model import Subject, check_model
from texelflow.gpu_delegate.cpu.compare import TOLERANCE, compare, errors, first_divergence
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.device.device import Device
from texelflow.gpu_delegate.model.graph import Graph, Node, Resize
from texelflow.gpu_delegate.plan.compile_options import COMPILE_DEFAULTS, CompileOptions
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.program_cache import VARIABLE as PROGRAM_CACHE
from texelflow.gpu_delegate.targets.gl.runtime import Program, device_of
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph
from texelflow.gpu_delegate.targets.llvm.native_program import NativeProgram, compile_native

Alter = Callable[[Graph], tuple[Graph, Node]]

CLIP = Path(assets.__file__).parent / "people.mp4"
SPEC = SpecOptions((0.0, 1.0), "none", 0)


def with_node(graph: Graph, old: Node, new: Node) -> Graph:
    return replace(graph, nodes=tuple(new if node is old else node for node in graph.nodes))


def alter_weight(graph: Graph) -> tuple[Graph, Node]:
    """One weight of a convolution in the middle of the network."""
    node = [node for node in graph.nodes if node.op == "CONV_2D"][8]
    producer = graph.producers().get(node.inputs[1])
    tensor = graph.tensors[producer.inputs[0] if producer else node.inputs[1]]
    assert tensor.data is not None
    data = tensor.data.copy()
    data.reshape(-1)[0] += 0.5
    changed = replace(tensor, data=data)
    return replace(graph, tensors=MappingProxyType({**graph.tensors, tensor.index: changed})), node


def alter_activation(graph: Graph) -> tuple[Graph, Node]:
    """A RELU becomes a HARD_SWISH."""
    node = [node for node in graph.nodes if node.op == "RELU"][3]
    changed = replace(node, op="HARD_SWISH")
    return with_node(graph, node, changed), changed


def alter_resize(graph: Graph) -> tuple[Graph, Node]:
    """A resize samples at corners instead of centers."""
    node = next(node for node in graph.nodes if node.op == "RESIZE_BILINEAR")
    assert isinstance(node.attributes, Resize)
    flipped = replace(node.attributes, half_pixel_centers=not node.attributes.half_pixel_centers)
    return with_node(graph, node, replace(node, attributes=flipped)), node


ALTERS = (alter_weight, alter_activation, alter_resize)
ALTERATIONS = one_in(3, "alter", ALTERS)


@pytest.fixture(scope="module")
def network() -> bytes:
    return selfie_like(1)


@pytest.fixture
def model_file(tmp_path: Path, network: bytes) -> Path:
    path = tmp_path / "network.tflite"
    path.write_bytes(network)
    return path


def compile_instead(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the compilers had a defect: they get this graph, TensorFlow Lite the model's."""

    def altered(_: Graph, device: Device, options: CompileOptions = COMPILE_DEFAULTS) -> CompiledGraph:
        return compile_graph(graph, device, options)

    def altered_native(_: Graph, *arguments: Any, **options: Any) -> NativeProgram:
        return compile_native(graph, *arguments, **options)

    for user in ("texelflow.gpu_delegate.saving.kept_graph", check_model_verb.__name__):
        monkeypatch.setattr(f"{user}.compile_graph", altered)
    monkeypatch.setattr(check_model_verb, "compile_native", altered_native)
    monkeypatch.setenv(PROGRAM_CACHE, "0")  # others get what they ask for


@exhaustive
@pytest.mark.gl
@one_in(3, ("backend", "unfused"), [("gl", False), ("gl", True), ("native", False)])
def test_a_sound_model_passes(network: bytes, backend: str, unfused: bool, capsys: pytest.CaptureFixture[str]) -> None:
    graph = read_model(network)
    figures, code = check_model(
        Subject("network", graph, (0, 1)), None, Console(), CompileOptions(not unfused), backend
    )
    assert (code, figures["passed"], figures["first_divergence"]) == (0, True, None)
    compared = {tensor["tensor"] for tensor in figures["tensors"]}
    assert set(graph.outputs) <= compared
    assert len(figures["inputs"]) > 1
    assert "tensors agree" in capsys.readouterr().out
    if unfused:
        assert compared == {node.outputs[0] for node in graph.nodes if node.op != "DEQUANTIZE"}


@pytest.mark.gl
@one_in(
    7,
    ("alter", "backend", "unfused"),
    [(alter_activation, "native", False), *((alter, "gl", unfused) for alter in ALTERS for unfused in (False, True))],
)
def test_an_altered_op_is_named(
    network: bytes,
    alter: Alter,
    backend: str,
    unfused: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sound = read_model(network)
    altered, node = alter(sound)
    compile_instead(altered, monkeypatch)
    figures, code = check_model(
        Subject("network", sound, (0, 1)), None, Console(), CompileOptions(not unfused), backend
    )
    assert (code, figures["passed"]) == (1, False)
    name = f"{node.op} (operator {node.index})"
    assert name in figures["verdict"]
    assert name in " ".join(capsys.readouterr().out.split())
    growth = figures["first_growth"]
    assert node.index in (growth["operator"], *growth["computed_with"])
    assert growth["float64"]["ours"] > 100 * max(growth["float64"][each] for each in ("reference", "xnnpack"))
    if unfused:
        assert figures["first_divergence"]["operator"] == node.index == growth["operator"]
        before = [t for t in figures["tensors"] if t["operator"] < node.index]
        assert before
        assert all(t["max_error"] <= t["limit"] for t in before)


def offset_and_back() -> bytes:
    """A convolution whose bias is taken away again: passes do so before anything is rounded, the others cannot."""
    model, rng = ModelBuilder(), np.random.default_rng(0)
    x, shape = model.input((1, 16, 16, 32)), (1, 16, 16, 8)
    weights, far = model.constant(rng.normal(size=(8, 1, 1, 32))), np.full(8, 2.0**20)
    moved = model.op("CONV_2D", [x, weights, model.constant(far)], shape, stride=(1, 1), padding="SAME")
    model.output(model.op("ADD", [moved, model.constant(-far)], shape))
    return model.build()


def test_float64_decides_where_tensorflow_lites_kernels_differ(capsys: pytest.CaptureFixture[str]) -> None:
    subject = Subject("offset", read_model(offset_and_back()), (0, 1))
    figures, code = check_model(subject, None, Console(), backend="native")
    (tensor,) = figures["tensors"]
    found = tensor["float64"]
    assert tensor["max_error"] > tensor["limit"]
    assert found["ours"] < 1e-5 < 1e-2 < min(found["reference"], found["xnnpack"]) <= found["theirs"]
    assert (code, figures["passed"], figures["first_growth"]) == (0, True, None)
    assert "1 of them as near to float64 as TensorFlow Lite or rounding is" in figures["verdict"]
    assert f"tensor5: {found['ours']:.1e} from float64 at most" in " ".join(capsys.readouterr().out.split())
    assert check_model(subject, TOLERANCE, Console(quiet=True), backend="native")[1] == 1, "a tolerance is asked for"


def test_what_float64_lacks_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    model = ModelBuilder()
    shape = (1, 4, 4, 3)
    x = model.input(shape)
    rounded = model.op("FAKE_QUANT", [x], shape, min=-1.0, max=1.0, num_bits=8)
    model.output(model.op("NEG", [rounded], shape), model.op("ABS", [x], shape))
    figures, code = check_model(
        Subject("rounded", read_model(model.build()), (0, 1)), None, Console(), backend="native"
    )
    assert code == 0
    known = {tensor["op"]: tensor["float64"] is not None for tensor in figures["tensors"]}
    assert known["ABS"]
    assert not known["NEG"]
    said = "in float64 there is no FAKE_QUANT: what follows is compared with TensorFlow Lite alone"
    assert said in " ".join(capsys.readouterr().out.split())


@exhaustive
@pytest.mark.gl
@ALTERATIONS
def test_a_clip_on_an_altered_network_fails(
    model_file: Path,
    alter: Alter,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sound = load_segmentation(str(model_file), SPEC)
    altered, node = alter(sound.graph)
    compile_instead(altered, monkeypatch)
    picture = tmp_path / "worst.png"
    with FileSource(CLIP, 59, 60) as source:
        figures, code = check_clip(source, sound, None, picture, Console())
    assert code == 1
    assert f"{node.op} (operator {node.index})" in figures["verdict"]
    assert figures["verdict"] in capsys.readouterr().out.replace("\n", " ")
    assert figures["worst_frame"] in figures["failed_frames"]
    drawn = np.asarray(cv2.imread(str(picture)))
    assert drawn.shape == (480 + 32, 4 * 640, 3)
    rgba = frame_of(figures["worst_frame"])
    np.testing.assert_array_equal(drawn[32:, :640], rgba[..., 2::-1])


def frame_of(index: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    with FileSource(CLIP, index, index) as source:
        return next(iter(source)).rgba


@pytest.mark.parametrize(("backend", "most"), [pytest.param("gl", 1e-3, marks=pytest.mark.gl), ("native", 1e-4)])
def test_demo_clip_agrees(
    backend: str, most: float, selfie_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model: SegmentationModel = load_segmentation(str(selfie_model))
    with FileSource(CLIP, 55, 74) as source:
        figures, code = check_clip(source, model, None, None, Console(quiet=True), backend=backend)
    assert (code, figures["frames"], figures["failed_frames"]) == (0, 20, [])
    assert figures["max_error"] <= most
    assert figures["min_iou"] >= 0.9999 or figures["max_pixels"] <= 2
    assert figures["network_error"] <= 1e-4
    assert not list(tmp_path.iterdir()), "a check that passes leaves no picture"


@pytest.mark.gl
def test_the_command_line_gives_json_and_exit_codes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    model_file = tmp_path / "small.tflite"
    model_file.write_bytes(selfie_like(1, blocks=ODD_BLOCKS[1:3]))
    assert main(["check", str(model_file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"] is True
    assert main(["check", str(model_file), "--json", "--tolerance", "0"]) == 1
    assert json.loads(capsys.readouterr().out)["first_divergence"]["max_error"] > 0
    clip = ["check", str(CLIP), "--model", str(model_file), "--from", "3", "--to", "4", "--json"]
    clip += ["--input-range", "0,1", "--activation", "none", "--channel", "0"]
    assert main(clip) == 0
    plain = json.loads(capsys.readouterr().out)
    assert (plain["frames"], plain["preprocessing"]) == (2, "plain")
    assert main([*clip, "--preprocessing", "auto"]) == 0
    auto = json.loads(capsys.readouterr().out)
    assert (auto["frames"], auto["preprocessing"]) == (2, "auto")
    assert main([*clip, "--tolerance", "0"]) == 1
    assert (tmp_path / "texelflow-check.png").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.mp4"], "nothing.mp4"),
        (["selfi"], "did you mean 'selfie'"),
        (["x" * 300], "xxx"),
        (["nothing.tflite"], "nothing.tflite"),
        (["selfie", "--tolerance=-1"], "--tolerance"),
        (["selfie", "--tolerance=nan"], "--tolerance"),
        (["selfie", "--report", "x.png"], "--report"),
        (["selfie", "--from", "3"], "--from"),
        ([str(CLIP), "--report", "no/such/folder/x.png"], "folder"),
        ([str(CLIP), "--unfused"], "--unfused"),
        ([str(CLIP), "--hybrid", "reference"], "--hybrid is for models"),
        (["selfie", "--hybrid", "exact"], "--hybrid exact: one of expanded, reference is needed"),
        ([str(CLIP), "--preprocessing", "none"], "--preprocessing none: one of auto, plain"),
        ([str(CLIP), "--from", "9", "--to", "3"], "range"),
        ([str(CLIP), "--model", "nope"], "nope"),
    ],
)
def test_bad_arguments_end_in_one_line(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *arguments]) == 2
    shown = capsys.readouterr().err
    assert words in shown
    assert shown.count("\n") == 1


def test_a_picture_that_cannot_be_written(model_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "no" / "such" / "folder.png"
    arguments = ["check", str(CLIP), "--model", str(model_file), "--to", "0", "--report", str(place)]
    assert main([*arguments, "--input-range", "0,1", "--activation", "none", "--channel", "0"]) == 2
    assert "folder.png" in capsys.readouterr().err.splitlines()[-1]


def test_in_place_arithmetic_does_not_fool_the_reference(context: Context) -> None:
    """TensorFlow Lite adds into the memory of an input that nobody else reads; that tensor must still compare."""
    model = ModelBuilder()
    shape = (1, 8, 8, 4)
    x = model.input(shape)
    left, right = model.op("RELU", [x], shape), model.op("LOGISTIC", [x], shape)
    product = model.op("MUL", [left, right], shape)
    model.output(model.op("ADD", [product, x], shape))
    data = model.build()
    graph = read_model(data)
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    with Program(
        context, compile_graph(graph, device_of(context), CompileOptions(fuse=False, keep_all=True))
    ) as program:
        found = compare(program, Reference(graph, keep_all_tensors=True), [values])
    assert [difference.tensor for difference in found] == [left, right, product, graph.outputs[0]]
    assert first_divergence(found) is None
    assert min(difference.magnitude for difference in found) > 0.5


def test_not_a_number_never_agrees() -> None:
    nan, inf = np.float32("nan"), np.float32("inf")
    gpu, cpu = np.array([[nan, inf, nan, 1]], np.float32), np.array([[nan, inf, 0, 1]], np.float32)
    np.testing.assert_array_equal(errors(gpu, cpu), np.array([[0, 0, nan, 0]], np.float32))
    assert not compare_masks(0, gpu, cpu).agrees(MaskLimits(1e9, 0.9999, 2))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 4)])
def test_a_picture_of_masks_that_are_no_numbers_or_huge(shape: tuple[int, ...], tmp_path: Path) -> None:
    gpu, cpu = np.full(shape, 3e38, np.float32), np.full(shape, -3e38, np.float32)
    gpu[0, 1], gpu[0, 2] = np.nan, np.inf
    save_picture(tmp_path / "0.png", compare_masks(0, gpu, cpu), np.zeros((4, 5, 4), np.uint8), gpu, cpu)
    assert (tmp_path / "0.png").stat().st_size


def test_masks_in_numbers() -> None:
    empty = np.zeros((4, 5), np.float32)
    assert compare_masks(7, empty, empty) == MaskDifference(7, 0.0, 0.0, pixels=0, union=0)
    half = empty.copy()
    half[:, :2] = 0.75
    shifted = half.copy()
    shifted[0, 0], shifted[0, 3] = 0.25, 0.5
    found = compare_masks(0, half, shifted)
    assert (found.max_error, found.pixels) == (0.5, 2)
    assert found.mean_error == pytest.approx(1 / 20)
    assert found.iou == pytest.approx(7 / 9)
    limits = MaskLimits(error=0.5, iou=0.9999, pixels=2)
    assert found.agrees(limits), "two pixels are allowed"
    assert not found.agrees(replace(limits, error=0.49))
    assert not found.agrees(replace(limits, pixels=1))
    assert found.agrees(replace(limits, pixels=1, of_clip=True)), "its outline is judged with those of others"
    same = replace(found, frame=1, pixels=0, union=100)
    assert failures([found, same], replace(limits, iou=0.98, of_clip=True, pixels=1)) == []
    assert failures([found, same], replace(limits, iou=0.99, of_clip=True, pixels=1)) == [0]
    assert failures([found, same], replace(limits, iou=0.98, pixels=1)) == [0]
    shifted[1, 3] = 0.5
    assert not compare_masks(0, half, shifted).agrees(replace(limits, error=1.0)), "three are not"


@pytest.mark.parametrize(
    "options",
    [
        ["--from", "1"],
        ["--to", "1"],
        ["--report", "x.png"],
        ["--activation", "sigmoid"],
        ["--channel", "0"],
        ["--preprocessing", "auto"],
        ["--tolerance", "nan"],
    ],
)
def test_options_that_a_model_has_no_use_for(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "selfie", *options]) == 2
    assert options[0] in capsys.readouterr().err


@pytest.mark.parametrize("hybrid", ["expanded", "reference"])
def test_each_way_of_hybrid_ops_is_compared_with_tensorflow_lite(
    hybrid: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net, model_file = Net(0), tmp_path / "hybrid.tflite"
    x = net.conv(net.input((1, 5, 6, 8)), 7, (3, 3), activation="RELU")
    net.output(net.connected(net.reshaped(x, 1, 5 * 6 * 7), 4))
    model_file.write_bytes(hybrid_twin(net))
    command = ["check", str(model_file), "--backend", "native", "--hybrid", hybrid]
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["hybrid"]
    assert found["reference"]["kernel"] < 1e-6 < 1e-3 < found["expanded"]["kernel"]
    assert found["reference"]["apart"] < found["expanded"]["apart"]
    assert main(command) == 0
    assert "Hybrid ops" in capsys.readouterr().out


def constant_beside(value: float, dtype: str = "float32") -> bytes:
    """x + 1 and a constant, which nothing reads."""
    model = ModelBuilder()
    shape = (1, 4, 4, 3)
    total = model.op("ADD", [model.input(shape), model.constant(np.ones(3))], shape)
    model.output(total, model.constant([value, 2], dtype))
    return model.build()


@exhaustive
@pytest.mark.gl
@one_in(2, "backend", ["gl", "native"])
def test_outputs_that_no_operator_computes_are_compared(
    backend: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ModelBuilder()
    x = model.input((1, 4, 4, 3))
    model.op("ADD", [x, x], (1, 4, 4, 3))
    model.output(model.constant([1, 2]), x)
    given = Subject("given", read_model(model.build()), (0, 1))
    figures, code = check_model(given, None, Console(), backend=backend)
    assert (code, [t["op"] for t in figures["tensors"]]) == (0, ["constant", "input"])
    assert [(t["operator"], t["limit"]) for t in figures["tensors"]] == [(None, 0.0)] * 2

    for dtype in ("float32", "int32"):
        compile_instead(read_model(constant_beside(3, dtype)), monkeypatch)
        subject = Subject("constant", read_model(constant_beside(1, dtype)), (0, 1))
        figures, code = check_model(subject, None, Console(), backend=backend)
        assert (code, [t["op"] for t in figures["tensors"]]) == (1, ["ADD", "constant"])
        assert figures["verdict"].endswith(": constant, tensor3: error 2, allowed 0")
        assert "constant, tensor3" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "backend", [pytest.param("gl", marks=pytest.mark.gl), "native", pytest.param("delegate", marks=pytest.mark.gl)]
)
@pytest.mark.parametrize(
    ("shape", "dtype", "words"),
    [
        ((1, 2), "string", "input tensor1 holds string"),
        ((1, 2), "resource", "input tensor1 holds resource"),
        ((-1, 2), "float32", "input tensor1 has the shape [-1, 2]"),
        ((1 << 15, 1 << 15), "float32", "input tensor1 has 1073741824 values, 67108864 are checked at most"),
    ],
)
def test_inputs_without_values_are_refused(
    shape: tuple[int, ...], dtype: str, words: str, backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ModelBuilder()
    x, _ = model.input((1, 4, 4, 3)), model.input(shape, dtype)
    model.output(model.op("NEG", [x], (1, 4, 4, 3)))
    path = tmp_path / "given.tflite"
    path.write_bytes(model.build())
    assert main(["check", str(path), "--backend", backend]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    if backend == "delegate" and -1 in shape:  # TensorFlow Lite refuses it before
        assert "Tensor 1 is invalidly specified" in line
    elif backend == "delegate" and "at most" in words:  # so does what bounds its memory
        assert "at most 2048 are granted" in line
    else:
        rest = "" if "at most" in words else ", so there are no values to check the model with"
        assert line == f"texelflow: given: {words}{rest}"


@pytest.mark.gl
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_inputs_without_dimensions_are_filled(dtype: str) -> None:
    model = ModelBuilder()
    x, scalar = model.input((1, 4, 4, 3)), model.input((), dtype)
    read = scalar if dtype == "float32" else x
    model.output(model.op("ADD", [x, read], (1, 4, 4, 3)))
    subject = Subject("scalar", read_model(model.build()), (0, 1))
    for backend in ("gl", "native"):
        assert check_model(subject, None, Console(quiet=True), backend=backend)[1] == 0

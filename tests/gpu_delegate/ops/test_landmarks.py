"""MediaPipe's ops on landmarks and crops, against their definitions written out in plain Python."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from flatbuffers import flexbuffers

from tests.gpu_delegate.ops.test_custom_ops import Cases, Values
from tests.helpers.engine import DEVICES, on_gpu
from tests.helpers.markers import one_in
from tests.helpers.native import native_networks
from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.base.errors import ModelError, UnsupportedError
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.cpu.rewriting import without_custom_landmarks
from texelflow.gpu_delegate.model.graph import Opaque
from texelflow.gpu_delegate.ops.landmarks import LandmarkMatrix
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.writer import write_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.truth.float64 import true_values

Rows = list[list[float]]


def product(one: Rows, other: Rows) -> Rows:
    return [[sum(row[k] * other[k][c] for k in range(4)) for c in range(4)] for row in one]


def shift(x: float, y: float) -> Rows:
    return [[1, 0, 0, x], [0, 1, 0, y], [0, 0, 1, 0], [0, 0, 0, 1]]


def scale(x: float, y: float) -> Rows:
    return [[x, 0, 0, 0], [0, y, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def rotation(angle: float) -> Rows:
    cosine, sine = math.cos(angle), math.sin(angle)
    return [[cosine, -sine, 0, 0], [sine, cosine, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]


def moved(matrix: Rows, x: float, y: float) -> tuple[float, float]:
    first, second = (row[0] * x + row[1] * y + row[3] for row in matrix[:2])
    return first, second


def matrix_of(landmarks: Values, said: dict[str, Any]) -> Values:
    """The box around landmarks in the turned plane, step by step."""
    (x0, y0, _), (x1, y1, _) = (map(float, landmarks[0, said[f"{side}_rotation_idx"]]) for side in ("left", "right"))
    angle = said["target_rotation_radians"] - math.atan2(y1 - y0, x1 - x0)
    turned = [moved(rotation(angle), *map(float, landmarks[0, k, :2])) for k in said["subset_idxs"]]
    (left, right), (top, bottom) = ((min(axis), max(axis)) for axis in zip(*turned, strict=True))
    middle = moved(rotation(-angle), (left + right) / 2, (top + bottom) / 2)
    width, height = said["output_width"], said["output_height"]
    factors = said["scale_x"] * (right - left) / width, said["scale_y"] * (bottom - top) / height
    found = product(product(shift(*middle), rotation(-angle)), product(scale(*factors), shift(-width / 2, -height / 2)))
    return np.array([found], np.float32)


def crop_of(x: Values, matrix: Values, height: int, width: int) -> Values:
    _, rows, columns, channels = x.shape
    out = np.zeros((1, height, width, channels), np.float32)
    for i, j in np.ndindex(height, width):
        across, down = moved(matrix[0].astype(np.float64).tolist(), j + 0.5, i + 0.5)
        across, down = across - 0.5, down - 0.5
        if not (0 <= across <= columns - 1 and 0 <= down <= rows - 1):
            continue
        left, top = math.floor(across), math.floor(down)
        for row, column in np.ndindex(2, 2):
            if top + row < rows and left + column < columns:
                near = (1 - abs(down - top - row)) * (1 - abs(across - left - column))
                out[0, i, j] += np.float32(near) * x[0, top + row, left + column]
    return out


def mapped(landmarks: Values, matrix: Values) -> Values:
    out = landmarks.copy()
    for k, point in enumerate(landmarks[0]):
        out[0, k, :2] = moved(matrix[0].astype(np.float64).tolist(), float(point[0]), float(point[1]))
    return out


def said_of(points: Sequence[int], **changes: Any) -> dict[str, Any]:
    usual = {"left_rotation_idx": 0, "right_rotation_idx": 3, "target_rotation_radians": 0.0, "scale_x": 1.5}
    sizes = {"scale_y": 1.25, "output_width": 16, "output_height": 12}
    return {**usual, **sizes, "subset_idxs": list(points), **changes}


def options(said: dict[str, Any]) -> bytes:
    return bytes(flexbuffers.Dumps(said))


MATRICES = (
    [[0.5, 0.25, 0, 1.5], [-0.25, 0.5, 0, 2.25], [0, 0, 1, 0], [0, 0, 0, 1]],
    [[2.3, -0.4, 0, -3.1], [0.3, 1.7, 0, -1.3], [0, 0, 1, 0], [0, 0, 0, 1]],
    [[0.1, 0, 0, 40], [0, 0.1, 0, 40], [0, 0, 1, 0], [0, 0, 0, 1]],
)


@pytest.fixture(scope="module")
def landmark_cases() -> Cases:
    made = Cases()
    for said in (
        said_of((0, 1, 2, 3, 4), target_rotation_radians=0.7),
        said_of((8, 8, 2, 6), right_rotation_idx=7, scale_x=0.5, output_width=5, output_height=31),
        said_of((1, 4, 6), left_rotation_idx=2, right_rotation_idx=2, target_rotation_radians=-2.0),
    ):
        landmarks = made.input(made.rng.uniform(0, 20, (1, 9, 3)))
        tensor = made.model.op("Landmarks2TransformMatrix", [landmarks], (1, 4, 4), custom=options(said))
        made.output(tensor, matrix_of(made.inputs[-1], said))
    for number, matrix in enumerate(MATRICES):
        given = made.input(np.array([matrix], np.float64))
        values = made.inputs[-1]
        channels, (height, width) = (1, 5, 4)[number], ((9, 7), (5, 6), (1, 11))[number]
        x = made.input(made.rng.uniform(-1, 1, (1, 9, 7, channels)))
        crop = options({"output_height": height, "output_width": width})
        tensor = made.model.op("TransformTensorBilinear", [x, given], (1, height, width, channels), custom=crop)
        made.output(tensor, crop_of(made.inputs[-1], values, height, width))
        for coordinates in (2, 3):
            landmarks = made.input(made.rng.uniform(-9, 9, (1, 7 + number, coordinates)))
            shape = made.inputs[-1].shape
            tensor = made.model.op("TransformLandmarks", [landmarks, given], shape)
            made.output(tensor, mapped(made.inputs[-1], values))
    return made


@one_in(2, "fuse", [True, False])
def test_the_gpu_agrees_with_the_definitions(context: Context, landmark_cases: Cases, fuse: bool) -> None:
    compiled = compile_graph(landmark_cases.graph(), DEVICES["software"], CompileOptions(fuse=fuse))
    for found, wanted in zip(on_gpu(context, compiled, landmark_cases.inputs), landmark_cases.wanted, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=5e-5)


def test_native_code_agrees_with_the_definitions(landmark_cases: Cases) -> None:
    found = native_networks({0: landmark_cases.graph()})[0].run(landmark_cases.inputs)
    for each, wanted in zip(found, landmark_cases.wanted, strict=True):
        np.testing.assert_allclose(each, wanted, rtol=1e-5, atol=5e-5)


def test_tensorflow_lite_agrees_by_ops_of_its_own(landmark_cases: Cases) -> None:
    graph = landmark_cases.graph()
    with pytest.raises(ModelError, match="custom op"):
        Reference(graph)
    found = Reference(without_custom_landmarks(graph)).run(landmark_cases.inputs)
    for each, wanted in zip(found, landmark_cases.wanted, strict=True):
        np.testing.assert_allclose(each, wanted, rtol=1e-5, atol=5e-5)


def test_float64_agrees_with_the_definitions(landmark_cases: Cases) -> None:
    graph = landmark_cases.graph()
    found = dict(true_values(graph, landmark_cases.inputs))
    for tensor, wanted in zip(graph.outputs, landmark_cases.wanted, strict=True):
        values = found[tensor]
        assert values is not None
        np.testing.assert_allclose(values, wanted, rtol=1e-6, atol=1e-5)


def test_landmark_ops_are_read_as_they_were_written(landmark_cases: Cases) -> None:
    graph = landmark_cases.graph()
    again = read_model(write_model(graph))
    assert [(node.op, node.attributes) for node in again.nodes] == [(node.op, node.attributes) for node in graph.nodes]
    assert any(isinstance(node.attributes, LandmarkMatrix) for node in graph.nodes)


def refused(op: str, shapes: Sequence[tuple[int, ...]], out: tuple[int, ...], custom: bytes) -> str:
    model = ModelBuilder()
    model.output(model.op(op, [model.input(shape) for shape in shapes], out, custom=custom))
    graph = read_model(model.build())
    (node,) = graph.nodes
    assert isinstance(node.attributes, Opaque)
    with pytest.raises(UnsupportedError, match=rf"operator 0 \({op}\): "):
        compile_graph(graph, DEVICES["software"])
    return node.attributes.reason


@pytest.mark.parametrize(
    ("custom", "why"),
    [
        (b"", "damaged FlexBuffer"),
        (options({}), "another version"),
        (options(said_of((0, 9))), "2 of 9 landmarks"),
        (options(said_of((-1, 3))), "from -1"),
        (options(said_of(())), "0 of 9 landmarks"),
        (options(said_of((1, 2), left_rotation_idx=9)), "left_rotation_idx is 9"),
        (options(said_of((1, 2), scale_x=0.0)), "scales 0 and 1.25"),
        (options(said_of((1, 2), scale_y=math.nan)), "scales 1.5 and nan"),
        (options(said_of((1, 2), target_rotation_radians=math.inf)), "angle inf"),
        (options(said_of((1, 2), output_width=0)), "output_width is 0"),
        (options(said_of((1, 2), output_height=1 << 20)), "output_height is 1.04858e"),
        (options({**said_of(()), "subset_idxs": "all"}), "subset_idxs is no vector"),
    ],
)
def test_matrices_that_make_no_sense(custom: bytes, why: str) -> None:
    assert why in refused("Landmarks2TransformMatrix", [(1, 9, 3)], (1, 4, 4), custom)


@pytest.mark.parametrize(
    ("op", "shapes", "custom", "why"),
    [
        ("Landmarks2TransformMatrix", [(2, 9, 3)], options(said_of((1,))), "landmarks of shape"),
        ("TransformTensorBilinear", [(1, 4, 4, 2), (1, 4, 4)], options({}), "another version"),
        ("TransformTensorBilinear", [(1, 4, 4, 2), (1, 3, 3)], b"", "a matrix of shape"),
        ("TransformTensorBilinear", [(2, 4, 4, 2), (1, 4, 4)], options({"output_height": 1}), "2 maps at once"),
        ("TransformTensorBilinear", [(1, 4, 4, 2), (1, 4, 4)], options({"output_height": 1 << 30}), "output_height"),
        ("TransformLandmarks", [(1, 1, 1, 6), (1, 4, 4)], b"", "another version"),
        ("TransformLandmarks", [(1, 5, 4), (1, 4, 4)], b"", "landmarks of shape"),
    ],
)
def test_shapes_that_do_not_fit(op: str, shapes: list[tuple[int, ...]], custom: bytes, why: str) -> None:
    assert why in refused(op, shapes, (1, 1, 1, 2), custom)


def test_sizes_follow_from_the_options() -> None:
    model = ModelBuilder()
    x, matrix = model.input((1, 4, 5, 3)), model.input((1, 4, 4))
    crop = options({"output_height": 6, "output_width": 2})
    model.output(model.op("TransformTensorBilinear", [x, matrix], (), custom=crop))
    graph = read_model(model.build())
    assert graph.tensors[graph.outputs[0]].shape == (1, 6, 2, 3)


def test_the_identity_is_exact(context: Context) -> None:
    """Pixels at the edges are inside of the map."""
    model, values = ModelBuilder(), np.random.default_rng(0).uniform(-1, 1, (1, 6, 5, 3)).astype(np.float32)
    crop = options({"output_height": 6, "output_width": 5})
    model.output(
        model.op(
            "TransformTensorBilinear", [model.input((1, 6, 5, 3)), model.input((1, 4, 4))], (1, 6, 5, 3), custom=crop
        )
    )
    inputs: list[npt.NDArray[np.float32]] = [values, np.eye(4, dtype=np.float32)[None]]
    (found,) = on_gpu(context, compile_graph(read_model(model.build()), DEVICES["software"]), inputs)
    np.testing.assert_array_equal(found, values)

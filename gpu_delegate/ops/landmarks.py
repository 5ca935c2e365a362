"""MediaPipe's custom ops Landmarks2TransformMatrix, TransformTensorBilinear and TransformLandmarks: file form.

Their second versions, those in models with attention: options are FlexBuffers, of the last op none. The first makes of
landmarks (1, n, 3) a matrix (1, 4, 4) that maps pixels of a crop to pixels of the map: of the box around some of them,
turned so that the line from one landmark to another has an angle. The second reads a map at the pixels of such a crop,
the third maps landmarks of the crop back. Passes say all three by other ops.

They are defined in MediaPipe's mediapipe/util/tflite/operations and TensorFlow's lite/delegates/gpu/common/mediapipe.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flatbuffers import flexbuffers

from ..base.errors import ModelError
from ..custom.flexbuffer import flexbuffer_map
from ..custom.option_values import number_option, whole_numbers_option, whole_option
from ..model.graph import Attributes, Graph, Node, Size2
from ..model.operators import EncodedOperator, Operator, attributes_of
from .record import Example, FileForm, OpRecord

MATRIX = (1, 4, 4)
_MOST_SIZE, _MOST_POINTS = 1 << 14, 1 << 12


@dataclass(frozen=True)
class LandmarkMatrix(Attributes):
    """Of a crop around landmarks; sizes are (h, w)."""

    ends: tuple[int, int]  # landmarks, whose line from the first to the second has the angle then
    angle: float
    points: tuple[int, ...]  # landmarks around which the box lies
    scale: tuple[float, float]  # of the box
    size: Size2  # of the crop


def read_matrix(operator: Operator) -> Attributes:
    """Raises ModelError, UnsupportedError."""
    _, count, coordinates = operator.shape(0, rank=3)
    if operator.shape(0)[0] != 1 or coordinates != 3:
        operator.unsupported(f"landmarks of shape {list(operator.shape(0))}, not (1, landmarks, 3)")
    options = _options(operator)
    if "subset_idxs" not in options:
        operator.unsupported("options without subset_idxs, as of another version")
    try:
        points = whole_numbers_option(options, "subset_idxs")
        ends = (
            whole_option(options, "left_rotation_idx", 0, count - 1),
            whole_option(options, "right_rotation_idx", 0, count - 1),
        )
        found = LandmarkMatrix(
            ends,
            number_option(options, "target_rotation_radians"),
            points,
            (number_option(options, "scale_y"), number_option(options, "scale_x")),
            _size(options),
        )
    except ModelError as error:
        operator.damaged(str(error))
    if not 0 < len(points) <= _MOST_POINTS or min(points) < 0 or max(points) >= count:
        span = f", from {min(points)} to {max(points)}" if points else ""
        operator.damaged(f"a box around {len(points)} of {count} landmarks{span}")
    if not all(0 < factor < 1e6 for factor in found.scale) or not abs(found.angle) < 1e6:
        operator.damaged(f"scales {found.scale[1]:g} and {found.scale[0]:g}, angle {found.angle:g}")
    operator.expect(MATRIX)
    return found


def read_bilinear(operator: Operator) -> Attributes:
    """Raises ModelError, UnsupportedError."""
    batch, _, _, channels = operator.shape(0, rank=4)
    _check_matrix(operator)
    options = _options(operator)
    if "output_height" not in options:
        operator.unsupported("options without output_height, as of another version")
    if batch != 1:
        operator.unsupported(f"{batch} maps at once")
    try:
        height, width = _size(options)
    except ModelError as error:
        operator.damaged(str(error))
    operator.expect((1, height, width, channels))
    return Attributes()


def read_mapped(operator: Operator) -> Attributes:
    """Raises ModelError, UnsupportedError."""
    shape = operator.shape(0)
    if len(shape) == 4:
        operator.unsupported("landmarks of four dimensions, as of another version")
    if len(shape) != 3 or shape[0] != 1 or shape[2] not in (2, 3):
        operator.unsupported(f"landmarks of shape {list(shape)}, not (1, landmarks, 2 or 3)")
    _check_matrix(operator)
    operator.expect(shape)
    return Attributes()


def write_matrix(graph: Graph, node: Node) -> EncodedOperator:
    matrix = attributes_of(node, LandmarkMatrix)
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Key("subset_idxs")
        builder.TypedVectorFromElements(matrix.points)
        for name, value in zip(("left_rotation_idx", "right_rotation_idx"), matrix.ends, strict=True):
            builder.Int(name, value)
        builder.Float("target_rotation_radians", matrix.angle)
        for name, factor in zip(("scale_y", "scale_x"), matrix.scale, strict=True):
            builder.Float(name, factor)
        for name, value in zip(("output_height", "output_width"), matrix.size, strict=True):
            builder.Int(name, value)
    return EncodedOperator(node.inputs, custom_options=bytes(builder.Finish()))


def write_bilinear(graph: Graph, node: Node) -> EncodedOperator:
    _, height, width, _ = graph.tensors[node.outputs[0]].shape
    options = bytes(flexbuffers.Dumps({"output_height": height, "output_width": width}))
    return EncodedOperator(node.inputs, custom_options=options)


def write_mapped(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator(node.inputs)


def _check_matrix(operator: Operator) -> None:
    if operator.shape(1) != MATRIX:
        operator.damaged(f"a matrix of shape {list(operator.shape(1))}")


def _options(operator: Operator) -> Mapping[str, Any]:
    try:
        return flexbuffer_map(operator.custom_options)
    except ModelError as error:
        operator.damaged(str(error))


def _size(options: Mapping[str, Any]) -> Size2:
    height, width = (whole_option(options, f"output_{side}", 1, _MOST_SIZE) for side in ("height", "width"))
    return height, width


_LANDMARKS, _MAP = (1, 9, 3), (1, 8, 8, 8)

RECORDS = (
    OpRecord(
        "Landmarks2TransformMatrix",
        "window",
        FileForm(read_matrix, write_matrix, is_custom=True),
        Example(
            shapes=(_LANDMARKS,),
            out=MATRIX,
            attributes=LandmarkMatrix((1, 4), 0.25, (0, 2, 5, 7), (1.5, 1.25), (6, 8)),
        ),
        short_name="landmark_matrix",
    ),
    OpRecord(
        "TransformTensorBilinear",
        "window",
        FileForm(read_bilinear, write_bilinear, (0, 1), (2, 2), is_custom=True),
        Example(shapes=(_MAP, MATRIX), out=(1, 5, 3, 8)),
        short_name="transform_bilinear",
    ),
    OpRecord(
        "TransformLandmarks",
        "window",
        FileForm(read_mapped, write_mapped, (0, 1), (2, 2), is_custom=True),
        Example(shapes=(_LANDMARKS, MATRIX), out=_LANDMARKS),
        short_name="transform_landmarks",
    ),
)

"""Every op in a built .tflite file, as the reader gives it, and TensorFlow Lite's opinion of the same file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.model_files.model_builder import CHANGED, ModelBuilder, selfie_like
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.graph import (
    ABSENT,
    Activated,
    Alpha,
    Attributes,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Pad,
    Padding,
    Pool2D,
    Reduce,
    Resize,
    Softmax,
    TransposeConv2D,
)
from texelflow.gpu_delegate.ops.division import Division
from texelflow.gpu_delegate.ops.elementwise import read_broadcasting, read_plain
from texelflow.gpu_delegate.ops.registry import OPS, SUPPORTED_OPS
from texelflow.gpu_delegate.reading.reader import load_model, read_model

X = (1, 7, 9, 5)


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


@dataclass(frozen=True)
class Case:
    """One op on an input of shape X (two for binary ops): further file inputs, output shape, options, attributes."""

    op: str
    out: tuple[int, ...]
    expected: Attributes
    options: dict[str, Any]
    before: tuple[Any, ...] = ()  # constants before x
    after: tuple[Any, ...] = ()  # constants after x
    node_inputs: int = 1
    x: tuple[int, ...] = X

    def build(self) -> ModelBuilder:
        model = ModelBuilder()
        x = model.input(self.x, "float16" if self.op == "DEQUANTIZE" else "float32")
        before = [model.constant(value, str(value.dtype)) for value in self.before]
        after = [model.constant(value, str(value.dtype)) for value in self.after]
        model.output(model.op(self.op, [*before, x, *after], self.out, **self.options))
        return model


def ints(*values: Any) -> Any:
    return np.array(values, np.int32)


ARITHMETIC = {"ADD": Activated, "SUB": Activated, "MUL": Activated, "DIV": Division}  # with a fused activation
FORMS = {  # of ops that neither take nor give truth values, which have rows in the table of op cases
    op: form
    for op in SUPPORTED_OPS
    if (form := OPS[op].file) and "bool" not in (*form.first_dtypes, *form.dtypes, *form.out_dtypes)
}
PLAIN = [op for op, form in FORMS.items() if form.parse is read_plain]
BROADCAST = [op for op, form in FORMS.items() if form.parse is read_broadcasting]
SAME: dict[str, Any] = {"padding": "SAME", "stride": (2, 1)}
VALID: dict[str, Any] = {"padding": "VALID", "stride": (2, 2)}
CASES = [
    *(Case(op, X, Attributes(), {}) for op in PLAIN),
    Case("LEAKY_RELU", X, Alpha(0.25), {"alpha": 0.25}),
    *(
        Case(op, X, kind("RELU6"), {"activation": "RELU6"}, after=(zeros(1, 1, 1, 5),), node_inputs=2)
        for op, kind in ARITHMETIC.items()
    ),
    *(Case(op, X, Division(), {}, after=(np.float32(3),), node_inputs=2) for op in ("FLOOR_DIV", "FLOOR_MOD")),
    *(Case(op, X, Attributes(), {}, after=(zeros(),), node_inputs=2) for op in BROADCAST),
    Case(
        "DEPTH_TO_SPACE",
        (1, 4, 6, 3),
        Attributes(),
        {"block_size": 2},
        x=(1, 2, 3, 12),
    ),
    Case(
        "CONV_2D",
        (1, 4, 9, 13),
        Conv2D("RELU", (2, 1), (1, 1), Padding(1, 1, 0, 1)),
        SAME | {"activation": "RELU"},
        after=(zeros(13, 3, 2, 5), zeros(13)),
        node_inputs=3,
    ),
    Case(
        "CONV_2D",
        (1, 3, 3, 3),
        Conv2D("NONE", (1, 2), (2, 2), Padding()),
        {"padding": "VALID", "stride": (1, 2), "dilation": (2, 2)},
        after=(zeros(3, 3, 3, 5), zeros(3)),
        node_inputs=3,
    ),
    Case(
        "DEPTHWISE_CONV_2D",
        (1, 4, 9, 10),
        DepthwiseConv2D("NONE", (2, 1), (1, 1), Padding(2, 2, 2, 2), 2),
        SAME | {"depth_multiplier": 2},
        after=(zeros(1, 5, 5, 10), zeros(10)),
        node_inputs=3,
    ),
    Case(
        "TRANSPOSE_CONV",
        (1, 13, 18, 3),
        TransposeConv2D("NONE", (2, 2), Padding(1, 1, 0, 1)),
        {"padding": "SAME", "stride": (2, 2)},
        before=(ints(1, 13, 18, 3), zeros(3, 3, 3, 5)),
        after=(zeros(3),),
        node_inputs=3,
    ),
    Case(
        "TRANSPOSE_CONV",
        (1, 15, 19, 3),
        TransposeConv2D("NONE", (2, 2), Padding()),
        VALID,
        before=(ints(1, 15, 19, 3), zeros(3, 3, 3, 5)),
        node_inputs=3,
    ),
    Case(
        "Convolution2DTransposeBias",
        (1, 14, 18, 3),
        TransposeConv2D("NONE", (2, 2), Padding(0, 1, 0, 1)),
        {"padding": "SAME", "stride": (2, 2)},
        after=(zeros(3, 3, 3, 5), zeros(3)),
        node_inputs=3,
    ),
    Case(
        "FULLY_CONNECTED",
        (63, 3),
        Activated("RELU"),
        {"activation": "RELU"},
        after=(zeros(3, 5), zeros(3)),
        node_inputs=3,
    ),
    Case(
        "FULLY_CONNECTED",
        (1, 7, 9, 3),
        Activated(),
        {"keep_num_dims": True},
        after=(zeros(3, 5), zeros(3)),
        node_inputs=3,
    ),
    Case("FULLY_CONNECTED", (63, 3), Activated(), {}, after=(zeros(3, 5),), node_inputs=3),
    Case("AVERAGE_POOL_2D", (1, 3, 4, 5), Pool2D("NONE", (3, 2), (2, 2), Padding()), VALID | {"kernel": (3, 2)}),
    Case("MAX_POOL_2D", (1, 4, 9, 5), Pool2D("NONE", (3, 2), (2, 1), Padding(1, 1, 0, 1)), SAME | {"kernel": (3, 2)}),
    Case("MEAN", (1, 1, 1, 5), Reduce((1, 2), True), {"keep_dims": True}, after=(ints(-2, 1),)),
    Case("MEAN", (1, 7, 9), Reduce((3,), False), {}, after=(ints(3),)),
    Case("SUM", (1, 7, 1, 1), Reduce((2, 3), True), {"keep_dims": True}, after=(ints(-1, 2),)),
    Case("SOFTMAX", X, Softmax(0.25), {"beta": 0.25}),
    Case("RESIZE_BILINEAR", (1, 11, 4, 5), Resize(False, True), {"half_pixel_centers": True}, after=(ints(11, 4),)),
    Case("RESIZE_NEAREST_NEIGHBOR", (1, 3, 20, 5), Resize(True), {"align_corners": True}, after=(ints(3, 20),)),
    Case(
        "PAD", (1, 8, 12, 5), Pad(((0, 0), (0, 1), (1, 2), (0, 0))), {}, after=(ints([0, 0], [0, 1], [1, 2], [0, 0]),)
    ),
    Case(
        "PADV2",
        (1, 7, 9, 6),
        Pad(((0, 0), (0, 0), (0, 0), (0, 1)), -1.5),
        {},
        after=(ints([0, 0], [0, 0], [0, 0], [0, 1]), np.float32(-1.5)),
    ),
    Case(
        "CONCATENATION",
        (1, 7, 9, 13),
        Concatenation("NONE", 3),
        {"axis": -1},
        after=(zeros(1, 7, 9, 8),),
        node_inputs=2,
    ),
    Case("RESHAPE", (1, 63, 5), Attributes(), {}, after=(ints(1, -1, 5),)),
    Case("RESHAPE", (315,), Attributes(), {"new_shape": (315,)}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op)
def test_reads_op(case: Case) -> None:
    model = case.build()
    graph = read_model(model.build())
    (node,) = graph.nodes
    assert (node.op, node.attributes, node.index) == (case.op, case.expected, 0)
    assert len(node.inputs) == case.node_inputs
    assert node.inputs[0] == model.inputs[0]
    assert graph.tensors[node.outputs[0]].shape == case.out
    assert {i for i in node.inputs if i != ABSENT} | set(node.outputs) == set(graph.tensors)


@pytest.mark.parametrize("case", [case for case in CASES if "QUANTIZE" not in case.op], ids=lambda case: case.op)
def test_tensorflow_lite_agrees_on_the_shape(case: Case) -> None:
    assert Reference(read_model(case.build().build())).output_shapes == (case.out,)


def test_constants_are_as_in_the_file() -> None:
    model = ModelBuilder()
    values = np.arange(5, dtype=np.float32) / 3
    model.output(model.op("ADD", [model.input(X), model.half(values)], X))
    graph = read_model(model.build(), "a\x1b[31m\nmodel")
    dequantize, add = graph.nodes
    half = graph.tensors[dequantize.inputs[0]]
    assert half.data is not None
    assert half.dtype == str(half.data.dtype) == "float16"
    np.testing.assert_array_equal(half.data, values.astype(np.float16))
    assert not half.data.flags.writeable
    assert not graph.tensors[add.inputs[1]].is_constant
    assert graph.name == "a?[31m?model"


def test_reads_the_changed_network() -> None:
    graph = read_model(selfie_like(3))
    width, height = CHANGED.size
    assert [graph.tensors[i].shape for i in graph.inputs] == [(1, height, width, 3)]
    assert [graph.tensors[i].shape for i in graph.outputs] == [(1, height, width, 1)]
    assert {graph.tensors[node.outputs[0]].shape[-1] % 4 for node in graph.nodes} >= {1, 3}


def test_batch_of_unknown_size_is_the_one_stated() -> None:
    model = ModelBuilder()
    x = model.tensor(X, signature=(-1, 7, 9, 5))
    model.inputs.append(x)
    model.output(model.op("RELU", [x], X))
    assert read_model(model.build()).tensors[x].shape == X


def test_loads_a_file(tmp_path: Path) -> None:
    file = tmp_path / "relu.tflite"
    file.write_bytes(CASES[0].build().build())
    assert load_model(file).name == "relu"

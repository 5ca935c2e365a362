"""Usage records of a graph's operators: the figures of TensorFlow's article, without the caller's tensors."""

import numpy as np

from tests.model_files.sketch import Sketch
from texelflow.app.models.networks import drawn
from texelflow.gpu_delegate.plan.memory.memory_bounds import lower_bound_bytes
from texelflow.gpu_delegate.plan.memory.op_graph import op_records
from texelflow.gpu_delegate.reading.reader import read_model

MIB = 1 << 20


def test_mobilenet_v2_takes_what_the_article_says() -> None:
    """Source: "Optimizing TensorFlow Lite Runtime Memory", blog.tensorflow.org, 2020: 26 MB for 65 tensors."""
    records = op_records(drawn("mobilenet-v2").graph("mobilenet-v2"))
    assert len(records) == 65
    assert f"{sum(record.size_bytes for record in records) / MIB:.3f}" == "26.313"
    assert f"{lower_bound_bytes(records) / MIB:.3f}" == "5.742"


def test_inputs_outputs_and_constants_are_left_out() -> None:
    model = Sketch(1)
    x = model.image(4, 6, 3)
    weights = model.op("DEQUANTIZE", [model.constant(np.ones((5, 1, 1, 3)), "float16")], (5, 1, 1, 3))
    made = model.op("CONV_2D", [x, weights, model.random(5)], (1, 4, 6, 5), stride=(1, 1), padding="SAME")
    bent = model.op("RELU", [made], (1, 4, 6, 5))
    model.output(model.op("ADD", [bent, made], (1, 4, 6, 5)))
    records = {record.tensor: record for record in op_records(read_model(model.build()))}
    assert [*records] == [made, bent]
    assert [(record.size_bytes, record.first_task, record.last_task) for record in records.values()] == [
        (4 * 6 * 5 * 4, 0, 2),
        (4 * 6 * 5 * 4, 1, 2),
    ]

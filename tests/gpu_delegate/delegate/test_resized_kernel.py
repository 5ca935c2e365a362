"""A partition is loaded once for each size that an interpreter goes back to; inputs may have open sizes."""

from typing import Any

import numpy as np
import pytest

from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.delegate.delegate import GpuDelegate
from texelflow.gpu_delegate.delegate.engine import DelegateEngine
from texelflow.gpu_delegate.delegate.kept_partitions import MOST_KEPT
from texelflow.gpu_delegate.delegate.native_delegate import NativePartsDelegate

pytestmark = pytest.mark.gl


def open_model() -> bytes:
    """A picture of any size, whose sizes some operators compute with; in the file it is one pixel."""
    m, shape = Sketch(seed=3), (1, 1, 1, 3)
    x = m.tensor(shape, signature=(1, -1, -1, 3))
    m.inputs.append(x)
    y = m.op("CONV_2D", [x, m.random(5, 3, 3, 3), m.random(5)], (1, 1, 1, 5), stride=(1, 1), padding="SAME")
    y = m.unary("RELU", y)
    flat = m.op("RESHAPE", [y, m.constant((1, -1, 5), "int32")], (1, 1, 5))
    m.output(m.unary("TANH", flat), m.mean(y))
    return m.build()


class Pair:
    """The model with the delegate and without."""

    def __init__(self, runtime: Any, delegate: GpuDelegate) -> None:
        self.delegate = delegate
        self.both = [
            runtime.Interpreter(model_content=open_model(), **options)
            for options in ({"experimental_delegates": [delegate]}, {})
        ]

    def check(self, height: int, width: int) -> None:
        values = np.random.default_rng(height).normal(0, 1, (1, height, width, 3)).astype(np.float32)
        found = []
        for made in self.both:
            made.resize_tensor_input(0, values.shape)
            made.allocate_tensors()
            made.set_tensor(0, values)
            made.invoke()
            found.append([made.get_tensor(each["index"]) for each in made.get_output_details()])
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


def test_sizes_come_back(runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = list[Any]()
    load = DelegateEngine.load

    def counted(engine: DelegateEngine, compiled: Any, *states: Any) -> Any:
        loaded.append(1)
        return load(engine, compiled, *states)

    monkeypatch.setattr(DelegateEngine, "load", counted)
    pair = Pair(runtime, GpuDelegate(strict=True))
    assert [each.nodes for each in pair.delegate.partitions] == [(0, 1, 2, 3, 4)]
    sizes = [(5, 7), (1, 1), (8, 3)]
    for _ in range(3):
        for size in sizes:
            pair.check(*size)
    assert len(loaded) == len(sizes)
    for height in range(10, 10 + MOST_KEPT + 2):
        pair.check(height, 4)
    assert len(loaded) == len(sizes) + MOST_KEPT + 2
    assert pair.delegate._application._engine.count == MOST_KEPT + 1  # type: ignore[union-attr]
    pair.check(5, 7)
    assert len(loaded) == len(sizes) + MOST_KEPT + 3
    pair.delegate.release()


def test_native_code_takes_other_sizes(runtime: Any) -> None:
    """Of one part, and of two with TensorFlow Lite between them; the last few sizes are kept."""
    for cpu_op in (False, True):
        m = Sketch(3)
        x = m.input((1, 4, 5, 3))
        y = m.unary("TANH", x)
        y = m.cpu_op(y) if cpu_op else y
        m.output(m.unary("NEG", m.conv(y, 6)))
        delegate = NativePartsDelegate(threads=1, every_part=True)
        made = runtime.Interpreter(model_content=m.build(), experimental_delegates=[delegate])
        plain = runtime.Interpreter(model_content=m.build())
        for shape in ((1, 4, 5, 3), (1, 7, 2, 3), (2, 1, 1, 3), (1, 4, 5, 3), (3, 3, 9, 3), (1, 2, 2, 3), (1, 7, 2, 3)):
            values = np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)
            found = []
            for each in (made, plain):
                each.resize_tensor_input(each.get_input_details()[0]["index"], shape)
                each.allocate_tensors()
                each.set_tensor(each.get_input_details()[0]["index"], values)
                each.invoke()
                found.append(each.get_tensor(each.get_output_details()[0]["index"]))
            np.testing.assert_allclose(found[0], found[1], atol=1e-5)
        assert delegate.partitions
        del made
        delegate.release()

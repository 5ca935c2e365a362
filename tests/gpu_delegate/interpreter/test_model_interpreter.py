"""The interpreter beside ai-edge-litert's own: the same calls, details, results and types of errors, in each way."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRt

import texelflow
from tests.model_files.sketch import Sketch
from tests.model_files.state_models import drawn, lstm

BACKENDS = ("native", "gl", "tflite")


def several() -> bytes:
    """Two inputs, one of which is an output, too, and an output that is given twice."""
    m = Sketch(1)
    x, y, z = m.image(4, 5, 3), m.input((2, 3)), m.input((3,))
    convolved = m.conv(x, 6, (3, 3))
    m.output(convolved, m.unary("TANH", y), z, convolved)
    return m.build()


MODELS: dict[str, Callable[[], bytes]] = {"several": several, "lstm": lambda: drawn(lstm)}


def comparable(details: Any) -> Any:
    return repr(details)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", MODELS)
def test_calls_give_what_those_of_litert_give(name: str, backend: Any) -> None:
    model, rng = MODELS[name](), np.random.default_rng(0)
    ours, theirs = texelflow.Interpreter(model_content=model, backend=backend), LiteRt(model_content=model)
    with ours:
        for made in (ours, theirs):
            made.allocate_tensors()
        assert comparable(ours.get_input_details()) == comparable(theirs.get_input_details())
        assert comparable(ours.get_output_details()) == comparable(theirs.get_output_details())
        for _ in range(3):  # states go on
            for detail in theirs.get_input_details():
                values = rng.normal(size=detail["shape"]).astype(detail["dtype"])
                for made in (ours, theirs):
                    made.set_tensor(detail["index"], values)
            for made in (ours, theirs):
                made.invoke()
            for detail in theirs.get_output_details():
                found, wanted = (made.get_tensor(detail["index"]) for made in (ours, theirs))
                np.testing.assert_allclose(found, wanted, atol=2e-5)
        assert ours.backend == ours.report().backend == backend


MISTAKES: dict[str, Callable[[Any], Any]] = {
    "type": lambda made: made.set_tensor(0, np.zeros((1, 4, 5, 3))),
    "dimensions": lambda made: made.set_tensor(0, np.zeros((1, 4, 5), np.float32)),
    "size": lambda made: made.set_tensor(0, np.zeros((1, 4, 5, 4), np.float32)),
    "index": lambda made: made.set_tensor(99, np.zeros((1, 4, 5, 3), np.float32)),
    "negative index": lambda made: made.get_tensor(-1),
    "index to get": lambda made: made.get_tensor(99),
    "name for an index": lambda made: made.get_tensor("tensor0"),
    "no array": lambda made: made.set_tensor(0, None),
    "signature": lambda made: made.get_signature_runner("nobody"),
    "no signature": lambda made: made.get_signature_runner(),
    "subgraph": lambda made: made.get_tensor_details(3),
    "resized tensor": lambda made: made.resize_tensor_input(99, [1, 2]),
    "strictly resized": lambda made: made.resize_tensor_input(0, [1, 9, 5, 3], strict=True),
    "size of text": lambda made: made.resize_tensor_input(0, "abc"),
}


@pytest.mark.parametrize("backend", BACKENDS)
def test_mistakes_are_errors_of_the_same_types(backend: Any) -> None:
    model = several()
    with texelflow.Interpreter(model_content=model, backend=backend) as ours:
        for before in (lambda made: made.invoke(), lambda made: made.get_tensor(0)):
            assert kind_of(before, ours) == kind_of(before, LiteRt(model_content=model))
        ours.allocate_tensors()
        for name, call in MISTAKES.items():
            theirs = LiteRt(model_content=model)
            theirs.allocate_tensors()
            with pytest.raises(texelflow.TexelflowError) as found:
                call(ours)
            assert isinstance(found.value, kind_of(call, theirs)), name
            assert "\n" not in str(found.value)


def kind_of(call: Callable[[Any], Any], made: Any) -> type[Exception]:
    """The built-in type of what a call raises."""
    with pytest.raises((ValueError, RuntimeError, TypeError)) as found:
        call(made)
    return next(kind for kind in (ValueError, RuntimeError, TypeError) if isinstance(found.value, kind))


def test_wrong_arguments_are_the_constructors_errors() -> None:
    wrong: list[dict[str, Any]] = [
        {},
        {"model_path": "nope.tflite"},
        {"model_content": b"abc"},
        {"model_path": "a", "model_content": b"c"},
        {"model_content": several(), "num_threads": 0},
        {"model_content": several(), "num_threads": "2"},
        {"model_content": several(), "experimental_op_resolver_type": "x"},
        {"model_path": 3},
        {"model_content": several(), "foo": 1},
    ]
    for arguments in wrong:
        kind = kind_of(lambda given: LiteRt(**given), arguments)
        with pytest.raises(kind):
            texelflow.Interpreter(**arguments)

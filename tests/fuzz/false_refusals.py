"""Checks that the reader calls no model damaged that TensorFlow Lite runs."""

import importlib
from typing import Any

import numpy as np

from tests.fuzz.children import in_child
from tests.fuzz.refusals import check_line
from texelflow.gpu_delegate.base.errors import ModelError, ModelSizeError
from texelflow.gpu_delegate.reading.reader import read_model

ORACLE = "ai_edge_litert.interpreter"  # which verifies where a file leads to, and does not run what it finds by chance


def judge_refusal(data: bytes) -> str:
    """Whether the reader takes a model, and if not, that it says rightly why. Raises ModelError, AssertionError."""
    try:
        read_model(data)
    except ModelSizeError:
        return "ran"
    except ModelError as error:
        check_line(error)
        ending = in_child(lambda: run_in_oracle(data))
        if ending.how == "text":
            raise AssertionError(f"TensorFlow Lite runs it: {error}") from error
        raise
    return "ran"


def run_in_oracle(data: bytes) -> str:
    """Load a file, allocate its tensors, run it once on noise and look at its outputs; raises what that raises."""
    interpreter: Any = importlib.import_module(ORACLE).Interpreter(model_content=data, num_threads=1)
    interpreter.allocate_tensors()
    rng = np.random.default_rng(0)
    for detail in interpreter.get_input_details():
        if np.dtype(detail["dtype"]).kind not in "OS":
            interpreter.set_tensor(detail["index"], rng.uniform(-2, 2, detail["shape"]).astype(detail["dtype"]))
    interpreter.invoke()
    return str(len(interpreter.get_output_details()))

"""Runs a model with a custom op that a function computes, between what runs on the GPU.

    python examples/custom_op.py MODEL.tflite NAME

The function here gives out its first input times the option "factor", or as it is without one.
"""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

import texelflow

try:
    from ai_edge_litert.interpreter import Interpreter
except ImportError:
    from tflite_runtime.interpreter import Interpreter

USAGE = "usage: custom_op.py MODEL.tflite NAME"


def scaled(inputs: Sequence[Any], operator: texelflow.CustomOperator) -> Any:
    """One output, of the shape of the input."""
    factor = operator.options.get("factor", 1.0) if operator.custom_options else 1.0
    return inputs[0] * np.float32(factor)


def main(model: str, name: str) -> None:
    """Run a model once, on ones."""
    op = texelflow.custom_op(name, scaled)
    with texelflow.GpuDelegate(custom_ops=[op], quiet=True) as delegate:
        interpreter = Interpreter(model_path=model, experimental_delegates=[delegate])
        interpreter.allocate_tensors()
        for taken in interpreter.get_input_details():
            interpreter.set_tensor(taken["index"], np.ones(taken["shape"], taken["dtype"]))
        interpreter.invoke()
        for given in interpreter.get_output_details():
            values = interpreter.get_tensor(given["index"])
            print(f"{given['name']}: {values.dtype} {list(values.shape)}, mean {values.mean():.6f}")
        print(delegate.summary)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(USAGE)
    try:
        main(*sys.argv[1:])
    except (RuntimeError, ValueError, texelflow.TexelflowError) as error:  # TensorFlow Lite raises the first two
        sys.exit(str(error))

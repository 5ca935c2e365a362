"""Runs quantized models in TensorFlow Lite: with the reference kernels and with XNNPACK.

What was measured on single convolutions (16,384 sums each): the reference kernels of both packages, tflite-runtime 2.14
and ai-edge-litert 2.3, scale an int32 in two roundings, by a multiplier of 31 bits and then by a power of two (halves
go up in the first and away from zero in the second). Their optimized kernels round as Ruy does, otherwise, and XNNPACK
rounds a product of float32 once, halves to even; it takes quantized operators in ai-edge-litert alone: tflite-runtime
2.14 leaves them to Ruy.
"""

import importlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tests.model_files.model_builder import Array, Shape

REFERENCE, XNNPACK = "BUILTIN_REF", "AUTO"


def litert() -> Any:
    """ai-edge-litert's module with the Interpreter."""
    return importlib.import_module("ai_edge_litert.interpreter")


class TfliteRun:
    """One file in ai-edge-litert's interpreter: the reference kernels or XNNPACK, for what no delegate takes."""

    def __init__(
        self, model: bytes, kernels: str = REFERENCE, keep_all: bool = False, delegates: Sequence[Any] = ()
    ) -> None:
        module = litert()
        self.interpreter = module.Interpreter(
            model_content=model,
            experimental_delegates=list(delegates),
            experimental_op_resolver_type=getattr(module.OpResolverType, kernels),
            experimental_preserve_all_tensors=keep_all,
        )
        self.interpreter.allocate_tensors()
        self.inputs = self.interpreter.get_input_details()
        self.outputs = self.interpreter.get_output_details()

    @property
    def input_shape(self) -> Shape:
        return tuple(map(int, self.inputs[0]["shape"]))

    @property
    def input_dtype(self) -> Any:
        return self.inputs[0]["dtype"]

    def __call__(self, given: Sequence[Array]) -> list[Array]:
        """The outputs as the file has them."""
        for detail, values in zip(self.inputs, given, strict=True):
            self.interpreter.set_tensor(detail["index"], np.asarray(values, detail["dtype"]))
        self.interpreter.invoke()
        return [np.array(self.interpreter.get_tensor(detail["index"])) for detail in self.outputs]


def every_tensor(model: bytes, samples: Sequence[Sequence[Array]]) -> Iterator[dict[int, Array]]:
    """The values of each tensor, for each sample of inputs."""
    run = TfliteRun(model, keep_all=True)
    indices = [detail["index"] for detail in run.interpreter.get_tensor_details() if detail["name"]]
    for given in samples:
        run(given)
        found = {}
        for index in indices:
            try:
                found[index] = np.array(run.interpreter.get_tensor(index))
            except ValueError:  # a tensor that no operator of the graph has needed
                continue
        yield found

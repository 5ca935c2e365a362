"""What runs a graph of convolutions again and again: TensorFlow Lite with XNNPACK, or a rival.

Rivals are packages of the bench alone, never dependencies. Each is used twice: with its input in the layout that it
computes in, packed beforehand, and from planes of channels, which it packs and pads by itself.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Literal, Protocol

import numpy as np

from texelflow.gpu_delegate.cpu.interpreter_module import load_interpreter_module
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.packing import Float32Array
from texelflow.gpu_delegate.reading.writer import write_model

from .retinaface_layers import from_channel_planes

InputForm = Literal["packed", "planes", "bytes"]  # bytes of RGBA for ours alone


class Contender(Protocol):
    """A network that is ready to run; it holds its input and its output."""

    def run(self) -> object:
        """One run, nothing else."""

    def write(self, bhwc: Float32Array) -> None:
        """The input of the runs from now on."""

    def read(self) -> Float32Array:
        """The output of the last input, BHWC."""


class XnnpackContender:
    """TensorFlow Lite's interpreter, whose convolutions XNNPACK computes."""

    def __init__(self, graph: Graph, form: InputForm, threads: int) -> None:
        self._is_planar = form == "planes"
        model = write_model(from_channel_planes(graph) if self._is_planar else graph)
        interpreter = load_interpreter_module().Interpreter(model_content=model, num_threads=threads)
        interpreter.allocate_tensors()
        self._interpreter = interpreter

    def run(self) -> object:
        """See Contender."""
        return self._interpreter.invoke()

    def write(self, bhwc: Float32Array) -> None:
        """See Contender."""
        values = np.ascontiguousarray(bhwc.transpose(0, 3, 1, 2)) if self._is_planar else bhwc
        self._interpreter.set_tensor(self._interpreter.get_input_details()[0]["index"], values)

    def read(self) -> Float32Array:
        """See Contender."""
        self.run()
        found: Float32Array = self._interpreter.get_tensor(self._interpreter.get_output_details()[0]["index"])
        return found


def open_xnnpack(graph: Graph, form: InputForm, threads: int) -> Contender:
    """Raises DeviceError where there is no TensorFlow Lite."""
    return XnnpackContender(graph, form, threads)


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Within it nothing reaches standard output, not what compiled modules write there either."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)

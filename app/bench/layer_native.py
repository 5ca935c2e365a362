"""A graph of convolutions goes in; the same network in our own code for the CPU comes out.

Planes of channels are the layout that it computes in, so a picture in planes is read as it is, with no way in.
"""

from texelflow.gpu_delegate.graph import Graph
from texelflow.gpu_delegate.llvm.runtime import NativeNetwork
from texelflow.gpu_delegate.packing import Float32Array

from .layer_contenders import Contender, InputForm


class NativeContender:
    """A network of machine code."""

    def __init__(self, graph: Graph, threads: int) -> None:
        self._network = NativeNetwork.load(graph, threads)
        (self._input,), (self._output,) = graph.inputs, graph.outputs
        self.run = self._network.compute

    def write(self, bhwc: Float32Array) -> None:
        """See Contender."""
        self._network.write(self._input, bhwc)

    def read(self) -> Float32Array:
        """See Contender."""
        self.run()
        found: Float32Array = self._network.read(self._output)
        return found


def open_ours(graph: Graph, form: InputForm, threads: int) -> Contender:
    """The graph in machine code for this CPU. Raises DeviceError without LLVM."""
    return NativeContender(graph, threads)

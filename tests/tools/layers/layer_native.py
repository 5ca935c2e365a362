"""Builds a graph of convolutions in our own code for the CPU.

Planes of channels are the layout that it computes in, so a picture in planes is read as it is, with no way in. One of
RGBA bytes is brought into planes by a kernel of the same call.
"""

import numpy as np

from texelflow.app.frame.inference.native_ends import sampled_picture
from texelflow.app.picture.picture import rgba_format
from texelflow.app.picture.preprocess import sampling
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.packing import Float32Array
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.cutting import cut_step, joined_rounds
from texelflow.gpu_delegate.targets.llvm.frame_steps import FrameKernels, SamplerStep
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork
from texelflow.gpu_delegate.targets.llvm.planes import planes_of
from texelflow.gpu_delegate.targets.llvm.work import WorkTable

from .contenders import Contender, InputForm

BLACK_AND_WHITE = (0.0, 1.0)  # what bytes of 0 and 255 are to the network


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


class PictureContender(NativeContender):
    """The same from RGBA bytes."""

    def __init__(self, graph: Graph, threads: int) -> None:
        super().__init__(graph, threads)
        network, stored = self._network, self._network.image.tensors[self._input]
        size = stored.shape.width, stored.shape.rows
        there = sampled_picture(rgba_format(size), sampling(size, size, "stretch"))
        planes = planes_of(network.memory(self._input), stored.shape, stored.storage)[: stored.shape.channels]
        self._sampler = SamplerStep(there, BLACK_AND_WHITE, planes, FrameKernels(native_target()))
        first = cut_step(len(network.steps), self._sampler.size, network.pool.threads)
        rounds = joined_rounds([first, *network.image.rounds])
        self._table = WorkTable(rounds, [*network.steps, self._sampler.addresses])
        self.run = lambda: network.pool.run(self._table)

    def write(self, bhwc: Float32Array) -> None:
        """See Contender; values are those of bytes."""
        rgb = np.rint(bhwc[0] * 255).astype(np.uint8)
        self._sampler.take([np.dstack([rgb, np.full(rgb.shape[:2], 255, np.uint8)])])


def open_ours(graph: Graph, form: InputForm, threads: int) -> Contender:
    """The graph in machine code for this CPU, from planes or a picture. Raises DeviceError without LLVM."""
    return (PictureContender if form == "bytes" else NativeContender)(graph, threads)

"""Makes networks of a model in the CPU's own code, for OwnWay."""

import math
from collections.abc import Callable

import numpy as np

from ..base.wording import counted
from ..delegate.bound_tensors import TensorBinding
from ..model.graph import Graph, Tensor
from ..model.layout import Precision
from ..model.packing import Float32Array, to_kernels
from ..model.quantization import is_quantized, zero_point_of
from ..targets.llvm.compiler import native_target
from ..targets.llvm.native_runtime import NativeNetwork
from ..targets.llvm.native_states import NativeStates
from ..targets.llvm.planes import values_of, write_planes
from ..targets.llvm.pool import WorkerPool, default_threads
from .call_errors import no_context
from .own_way import copied
from .run_way import AnyTensor, InterpreterReport


class NativeMaker:
    """See NetworkMaker: networks of one pool of threads, with one set of variables. Behind a fork they do without."""

    survives_fork = True

    def __init__(self, threads: int | None, precision: Precision) -> None:
        """With two threads if no number is given; one does all where that takes less time. Raises DeviceError."""
        self._target, self._precision = native_target(precision), precision
        self._pool = WorkerPool(self._target, threads or default_threads(), adapts=True)
        self._states = NativeStates()

    def make(self, graph: Graph) -> "NativeTensors":
        """See NetworkMaker."""
        return NativeTensors(NativeNetwork.load(graph, pool=self._pool, precision=self._precision, states=self._states))

    def report(self, operators: int) -> InterpreterReport:
        """See NetworkMaker."""
        renderer = f"{self._target.name} code on the CPU, {counted(self._pool.threads, 'thread')}"
        places = {"in the CPU's own code": operators}
        return InterpreterReport("native", renderer, operators, places, self._pool.threads, self._precision)

    def close(self) -> None:
        """See NetworkMaker."""
        self._pool.close()


_AT_ONCE = 1 << 15  # floats that stay in a cache while several functions of NumPy change them


def bytes_of(steps: Float32Array, tensor: Tensor) -> AnyTensor:
    """The integers of a quantized tensor for steps (..., channels) in any order of memory, some pixels at a time."""
    pixels, limits = steps.reshape(-1, steps.shape[-1]), np.iinfo(tensor.dtype)
    found = np.empty(pixels.shape, tensor.dtype)
    many, zero_point = max(1, _AT_ONCE // pixels.shape[1]), np.float32(zero_point_of(tensor))
    for first in range(0, len(pixels), many):
        part = np.ascontiguousarray(pixels[first : first + many])
        part = np.rint(part + zero_point)
        np.clip(part, limits.min, limits.max, part)
        np.copyto(found[first : first + many], part, casting="unsafe")
    return found.reshape(tensor.shape)


class SmallSteps:
    """A quantized tensor that lies in memory as floats, steps: what it is in the file, without passes that are spared.

    Of a model of some microseconds the general functions would take the most time. Results are the same.
    """

    def __init__(self, view: Float32Array, tensor: Tensor) -> None:
        """`view` is the memory in the shape of the file."""
        limits = np.iinfo(tensor.dtype)
        self._view, self._dtype = view, np.dtype(tensor.dtype)
        self._zero_point, self._lowest, self._highest = (
            np.array(value, np.float32) for value in (zero_point_of(tensor), limits.min, limits.max)
        )
        self._whole = np.empty(view.shape, np.float32)

    def write(self, values: AnyTensor) -> None:
        """Values of exactly its type and shape."""
        np.subtract(values, self._zero_point, out=self._view, dtype=np.float32)

    def read(self) -> AnyTensor:
        """A copy."""
        whole = self._whole
        np.add(self._view, self._zero_point, out=whole)
        np.rint(whole, out=whole)
        np.maximum(whole, self._lowest, out=whole)
        np.minimum(whole, self._highest, out=whole)
        return whole.astype(self._dtype)


class NativeTensors:
    """See OwnNetwork."""

    def __init__(self, network: NativeNetwork) -> None:
        self._network = network
        self.run: Callable[[], None] = network.compute
        image = network.image
        self._own_states = [state.name for state in image.states if not state.is_shared]
        ends = {*image.inputs, *image.outputs}
        self._views = {index: self._view(index) for index in ends}
        self._steps = {index: steps for index in ends if (steps := self._small_steps(index)) is not None}

    def write(self, index: int, values: AnyTensor) -> None:
        """See OwnNetwork. Infinities and NaN are computed with."""
        view = self._views[index]
        if view is not None and view.flags.c_contiguous:
            view[...] = values
            return
        if (steps := self._steps.get(index)) is not None:
            steps.write(values)
            return
        stored = self._network.image.tensors[index]
        given = to_kernels(values, stored.own, stored.shape)
        write_planes(self._network.memory(index), given, stored.shape, stored.storage)

    def read(self, index: int, out: AnyTensor | None = None) -> AnyTensor:
        """See OwnNetwork."""
        view = self._views[index]
        if view is not None:
            return copied(view, out)
        if (steps := self._steps.get(index)) is not None:
            return steps.read() if out is None else copied(steps.read(), out)
        stored = self._network.image.tensors[index]
        if stored.floats > _AT_ONCE and not stored.storage.is_bytes and is_quantized(stored.own):
            found = bytes_of(values_of(self._network.memory(index), stored.shape, stored.storage), stored.own)
        else:
            found = self._network.read(index)
        return found if out is None else copied(found, out)

    def view(self, index: int) -> AnyTensor | None:
        """See OwnNetwork."""
        view = self._views[index]
        return view if view is not None and view.flags.c_contiguous else None

    def bind(self, binding: TensorBinding) -> None:
        """See OwnNetwork: there is no OpenGL here."""
        raise no_context()

    def unbind(self, index: int | None) -> None:
        """See OwnNetwork."""

    def reset(self) -> None:
        """See OwnNetwork."""
        if self._own_states:
            self._network.reset_states(self._own_states)

    def close(self) -> None:
        """See OwnNetwork; its pool is the maker's."""
        self._network.close()

    def _view(self, index: int) -> Float32Array | None:
        """The memory of floats that mean themselves as an array of the tensor's shape; None of others."""
        stored = self._network.image.tensors[index]
        return self._floats(index) if stored.own.dtype == "float32" else None

    def _small_steps(self, index: int) -> SmallSteps | None:
        """Of a quantized tensor of few small integers whose memory has its shape."""
        stored = self._network.image.tensors[index]
        own = stored.own
        if not is_quantized(own) or np.dtype(own.dtype).itemsize > 2 or stored.floats > _AT_ONCE:
            return None
        floats = self._floats(index)
        return None if floats is None else SmallSteps(floats, own)

    def _floats(self, index: int) -> Float32Array | None:
        """The memory of a tensor of floats in the shape of the file; None where it has another order."""
        stored = self._network.image.tensors[index]
        if stored.storage.is_bytes or math.prod(stored.own.shape) != stored.shape.pixels * stored.shape.channels:
            return None
        planes = values_of(self._network.memory(index), stored.shape, stored.storage)
        view = planes.reshape(stored.own.shape)
        return view if np.may_share_memory(view, planes) else None

"""Programs with I/O binding, for tests of how tensors get in and out."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.delegate.io_binding import IoBinding
from texelflow.gpu_delegate.delegate.repacking import RepackingPrograms
from texelflow.gpu_delegate.device.device import SOFTWARE, Device
from texelflow.gpu_delegate.model.graph import Activated, Graph, Padding, Pool2D, Quantization, Shape, Steps, Tensor
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import read_buffer
from texelflow.gpu_delegate.targets.gl.runtime import Program, TensorRange
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph


@contextlib.contextmanager
def io_of(context: Context, graph: Graph, device: Device = SOFTWARE) -> Iterator[tuple[Program, IoBinding]]:
    """A program and its I/O binding; within it GL errors are none."""
    shaders = RepackingPrograms(context)
    with Program(context, compile_graph(graph, device)) as program:
        io = IoBinding(program, shaders)
        yield program, io
        io.release()
    shaders.release()
    context.check_errors("the I/O binding")


def product_graph(shape: Shape, dtype: str = "float32") -> Graph:
    """y = 3 * x; input 0, output 2. Integers are known to be so small that float32 has all products."""
    g = GraphBuilder()
    x = g.input(*shape, dtype=dtype)
    if "int" in dtype:
        g.tensors[x] = replace(g.tensors[x], steps=Steps(-5_000_000, 5_000_000))
    return g.graph(g.node("MUL", [x, g.constant(3.0)], shape, Activated(), dtype))


BYTE_TENSORS = (("int8", -3, 0.5), ("uint8", 128, 0.25), ("int8", -128, 1 / 255), ("uint8", None, None))


def bytes_graph(shapes: Sequence[Shape]) -> Graph:
    """The larger of each byte and the next one in its row, of each shape in each of BYTE_TENSORS.

    These are (type, zero point, scale). Inputs and outputs in that order.
    """
    g = GraphBuilder()
    outputs, pool = [], Pool2D("NONE", (1, 2), (1, 1), Padding(right=1))
    for shape in shapes:
        for dtype, zero_point, scale in BYTE_TENSORS:
            x = g.input(*shape, dtype=dtype)
            outputs.append(g.node("MAX_POOL_2D", [x], shape, pool, dtype))
            for tensor in (x, outputs[-1]):
                meaning = None if scale is None or zero_point is None else Quantization((scale,), (zero_point,))
                g.tensors[tensor] = replace(g.tensors[tensor], quantization=meaning)
    return g.graph(*outputs)


def random_bytes(tensor: Tensor, seed: int = 0) -> npt.NDArray[Any]:
    """Values of a tensor of bytes, the least and the largest among them."""
    limits, rng = np.iinfo(tensor.dtype), np.random.default_rng(seed + tensor.index)
    values = np.asarray(rng.integers(limits.min, limits.max, tensor.shape, endpoint=True)).astype(tensor.dtype)
    values.flat[:2] = [limits.max, limits.min][: values.size]
    return values


def larger_of_neighbors(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """What bytes_graph makes of an input."""
    following = np.concatenate([values[:, :, 1:], values[:, :, -1:]], axis=2)
    return np.maximum(values, following)


def two_graph(shape: Shape) -> Graph:
    """a + b and a - b; inputs 0 and 1, outputs 2 and 3."""
    g = GraphBuilder()
    a, b = g.input(*shape), g.input(*shape)
    return g.graph(*(g.node(op, [a, b], shape, Activated()) for op in ("ADD", "SUB")))


def numbers(shape: Shape, seed: int = 0) -> npt.NDArray[np.float32]:
    """Values of all signs, of which a shape and a seed have always the same."""
    return np.asarray(np.random.default_rng(seed).normal(0, 100, shape), np.float32)


def give(io: IoBinding, tensor: int, values: npt.NDArray[Any]) -> None:
    """Upload an array."""
    held = np.ascontiguousarray(values)
    io.upload(tensor, held.ctypes.data, held.nbytes)


def take(io: IoBinding, tensor: int, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Read an output into an array of the same type and shape as another."""
    found = np.full_like(like, 77)
    io.read(tensor, found.ctypes.data, found.nbytes)
    return found


def stored_bits(context: Context, place: TensorRange) -> npt.NDArray[np.uint32]:
    """All bytes of a stored tensor, padding lanes included."""
    return read_buffer(context, place).view(np.uint32)

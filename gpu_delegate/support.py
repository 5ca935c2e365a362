"""The name of an op goes in; whether the engine has a GPU kernel for it, tried on its record's example, comes out."""

from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from .device import SOFTWARE
from .errors import UnsupportedError
from .graph import Graph, Node, Quantization, Shape, Tensor
from .ops.record import OpRecord
from .ops.registry import OPS
from .program import compile_graph
from .quantization import BYTE_DTYPES

_SCALE = Quantization((0.0625,), (0,))  # of bytes


def unsupported_reason(op: str) -> str | None:
    """None if the op runs on the GPU, else the reason."""
    try:
        compile_graph(example_graph(OPS[op]), SOFTWARE)
    except UnsupportedError as error:
        return str(error).rpartition(" does not run on the GPU: ")[2]
    return None


def example_graph(record: OpRecord, seed: int = 0) -> Graph:
    """A graph of the record's example alone, with random constants; an op of constants alone gets a reader."""
    example, rng = record.example, np.random.default_rng(seed)
    tensors: list[Tensor] = []
    _append(tensors, example.out, example.out_dtype)
    first = record.file.first_dtypes[:1] if record.file else ()
    dtypes = [*first, *[example.dtype] * len(example.shapes)]
    inputs = [_append(tensors, shape, dtype) for shape, dtype in zip(example.shapes, dtypes, strict=False)]
    for shape in example.constants:
        values = rng.permutation(shape[0]) if example.constant_dtype else rng.uniform(-1, 1, shape)
        dtype = example.constant_dtype or example.dtype
        inputs.append(_append(tensors, shape, dtype, values.astype(dtype)))
    outputs = (0, *(_append(tensors, shape, example.others_dtype or example.out_dtype) for shape in example.others))
    nodes = [Node(record.name, tuple(inputs), outputs, example.attributes, index=0)]
    runtime = tuple(i for i in inputs if not tensors[i].is_constant)
    if not runtime:
        x, total = (_append(tensors, example.out, "float32") for _ in range(2))
        runtime = (x,)
        nodes.append(Node("ADD", (x, 0), (total,), OPS["ADD"].example.attributes, index=1))
    return Graph(record.name, MappingProxyType(dict(enumerate(tensors))), tuple(nodes), runtime, nodes[-1].outputs)


def _append(tensors: list[Tensor], shape: Shape, dtype: str, data: npt.NDArray[np.generic] | None = None) -> int:
    quantization = _SCALE if dtype in BYTE_DTYPES else None
    tensors.append(Tensor(len(tensors), f"t{len(tensors)}", shape, dtype, data, quantization))
    return len(tensors) - 1

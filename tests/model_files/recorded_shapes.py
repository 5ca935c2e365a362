"""Makes copies of a model that record other shapes than its operators write.

TensorFlow Lite never believes these shapes: it infers them when tensors are allocated.
"""

import struct
from collections.abc import Mapping
from typing import Any

import tflite

from texelflow.gpu_delegate.model.graph import Shape

SHAPE_SLOT = 4  # of Tensor's fields in its vtable: shape is the first
NO_SHAPE: Shape = ()


def written_tensors(data: bytes) -> list[int]:
    """The tensors of the first subgraph that operators write."""
    subgraph = tflite.Model.GetRootAs(data, 0).Subgraphs(0)
    operators = (subgraph.Operators(i) for i in range(subgraph.OperatorsLength()))
    return [int(tensor) for operator in operators for tensor in operator.OutputsAsNumpy()]


def recording(data: bytes, shapes: Mapping[int, Shape]) -> bytes:
    """The file with these shapes for these tensors; those that record none at all keep that."""
    subgraph, changed = tflite.Model.GetRootAs(data, 0).Subgraphs(0), bytearray(data)
    changed += bytes(-len(changed) % 4)
    for index, shape in shapes.items():
        table = subgraph.Tensors(index)._tab
        field = table.Offset(SHAPE_SLOT)
        if field:
            place = table.Pos + field
            struct.pack_into("<I", changed, place, len(changed) - place)
            changed += struct.pack(f"<I{len(shape)}i", len(shape), *shape)
    return bytes(changed)


def allocated_shapes(module: Any, data: bytes) -> dict[int, Shape]:
    """Of all tensors, as TensorFlow Lite infers them, without XNNPACK."""
    plain = module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = module.Interpreter(model_content=data, experimental_op_resolver_type=plain)
    interpreter.allocate_tensors()
    return {detail["index"]: tuple(map(int, detail["shape"])) for detail in interpreter.get_tensor_details()}

"""CAST: how files say it, and what it computes. Integers and truth values are floats in kernels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tflite

from ..code.evaluate import Values
from ..code.vocabulary import ZEROS, Compared, Operation, Value
from ..model.graph import Attributes, Graph, Node, Tensor
from ..model.operators import EncodedOperator, Operator, attributes_of
from .elementwise import elementwise
from .record import Example, FileForm

_TARGETS = ("float32", "int32", "int64", "bool")
_SOURCES = (*_TARGETS, "int8", "uint8", "int16", "uint16")


@dataclass(frozen=True)
class Cast(Attributes):
    """Types by NumPy's names."""

    source: str = "float32"
    target: str = "float32"

    @property
    def cuts_off(self) -> bool:
        """Whether fractions are cut off; other values are the same in both types, where float32 has them."""
        return self.source == "float32" and self.target.startswith("int")


def read_cast(operator: Operator) -> Attributes:
    """The tensors' types count: many files have none in the options, and TensorFlow Lite does not read those."""
    operator.expect(operator.shape(0))
    (source,) = operator.inputs
    assert source is not None, "the reader counts inputs"
    return Cast(source.dtype, operator.outputs[0].dtype)


def write_cast(graph: Graph, node: Node) -> EncodedOperator:
    cast = attributes_of(node, Cast)
    source, target = (getattr(tflite.TensorType, dtype.upper()) for dtype in (cast.source, cast.target))
    return EncodedOperator(node.inputs, "CastOptions", {"InDataType": source, "OutDataType": target})


def _converted(cast: Cast, x: Value) -> Value:
    if cast.target == "bool":
        return Compared("not equal", x, ZEROS)
    return Operation("truncate", (x,)) if cast.cuts_off else x


def _cast_values(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    (x,), to = values, np.dtype(output.dtype)
    if x.dtype.kind == "f" and to.kind in "iu":
        limits = np.iinfo(to)
        if not ((x >= limits.min) & (x <= limits.max)).all():
            raise ValueError(f"values that {output.dtype} cannot hold")
    return x.astype(to)


RECORDS = (
    elementwise(
        "CAST",
        _converted,
        FileForm(read_cast, write_cast, dtypes=_SOURCES, out_dtypes=_TARGETS),
        Example(dtype="bool", attributes=Cast("bool", "float32")),
        evaluate=_cast_values,
        undone_by=("CAST",),
    ),
)

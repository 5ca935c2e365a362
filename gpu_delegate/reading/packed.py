"""Unpacks constants of 4 and 2 bits, and makes those in blocks of one scale each floats.

A byte has two integers or four, the first in its lowest bits. TensorFlow Lite's kernels unpack them to int8, too; what
is quantized block by block has a scale for so many neighbours along its last dimension.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from flatbuffers.number_types import Int32Flags

from ..base.errors import ModelError
from ..model.graph import Shape, WeightBlocks

MAX_UNPACKED_BYTES = 1 << 28  # of all constants of a file together
LATER_TYPES: Mapping[str, int] = MappingProxyType({"int2": 19, "uint4": 20})  # of a later schema than the package has
PACKED_BITS: Mapping[str, int] = MappingProxyType({"int4": 4, "int2": 2})
BLOCKWISE = 2  # in the schema's QuantizationDetails
Int8s = npt.NDArray[np.int8]


def blocks_of(quantization: Any) -> WeightBlocks | None:
    """What the schema's QuantizationParameters say of blocks, in a table of a later schema than `tflite` has."""
    if quantization is None or quantization.DetailsType() != BLOCKWISE:
        return None
    table = quantization.Details()

    def field(number: int) -> int:
        offset = table.Offset(4 + 2 * number)
        return int(table.Get(Int32Flags, offset + table.Pos)) if offset else 0

    return WeightBlocks((), (), 0, field(0), field(1), field(2))


def written_blocks(builder: Any, scales: int, zero_points: int, blocks: WeightBlocks) -> int:
    """The schema's table of blocks, whose numbers these tensors have in the file."""
    builder.StartObject(4)
    for number, value in enumerate((scales, zero_points, blocks.size, blocks.dimension)):
        builder.PrependInt32Slot(number, value, 0)
    return int(builder.EndObject())


def unpacked(index: int, values: npt.NDArray[np.uint8], shape: Shape, dtype: str) -> Int8s:
    """The integers of a packed constant. Raises ModelError if there are too few."""
    bits, count = PACKED_BITS[dtype], math.prod(shape)
    size = -(-count * bits // 8)
    if values.size < size:
        raise ModelError(f"tensor {index} of {size} bytes has a constant of {values.size} bytes")
    lifts = np.arange(8 - bits, -1, -bits, dtype=np.uint8)  # to the left, so that the first bit is the sign
    lifted = (values[:size, None] << lifts).astype(np.uint8).view(np.int8) >> (8 - bits)
    return lifted.reshape(-1)[:count].reshape(shape)


def real_blocks(values: Int8s, scales: npt.NDArray[np.generic], size: int) -> npt.NDArray[np.float32] | None:
    """What integers in blocks of so many mean; None where scales do not fit them."""
    if not values.ndim or size < 1 or values.shape[-1] % size or scales.size * size != values.size:
        return None
    each = np.asarray(scales, np.float32).reshape(-1, 1)
    if not np.isfinite(each).all():
        return None
    real: npt.NDArray[np.float32] = (values.reshape(-1, size) * each).reshape(values.shape)
    return real

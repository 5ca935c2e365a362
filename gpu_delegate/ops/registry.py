"""Collects the records of all ops, by the ops' names."""

from collections.abc import Mapping
from types import MappingProxyType

from . import (
    blocks,
    called,
    cast,
    comparison,
    concatenation,
    convolution,
    depth_to_space,
    digit_ops,
    division,
    elementwise,
    extremum,
    fake_quant,
    fully_connected,
    landmarks,
    lookup,
    matrix_product,
    normalization,
    pad,
    recurrent,
    reduce,
    requantize,
    reshape,
    resize,
    running_sum,
    shape,
    short_steps,
    spectrum,
    split,
    strided_slice,
    top,
    transpose,
    unpooling,
    variables,
    window,
)
from .record import OpRecord

_FAMILIES = (
    convolution,
    window,
    fully_connected,
    matrix_product,
    recurrent,
    called,
    elementwise,
    fake_quant,
    division,
    comparison,
    cast,
    requantize,
    short_steps,
    digit_ops,
    reduce,
    extremum,
    top,
    running_sum,
    normalization,
    resize,
    pad,
    concatenation,
    reshape,
    shape,
    strided_slice,
    split,
    transpose,
    lookup,
    unpooling,
    landmarks,
    blocks,
    depth_to_space,
    spectrum,
    variables,
)

OPS: Mapping[str, OpRecord] = MappingProxyType(
    {record.name: record for family in _FAMILIES for record in family.RECORDS}
)
SUPPORTED_OPS: tuple[str, ...] = tuple(name for name, record in OPS.items() if record.file is not None)

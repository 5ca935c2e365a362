"""Prints positions, conditions and other per-pixel numbers of kernels as LLVM's instructions.

What a column or a row alone decides was computed before (index_analysis.py): it is a number where it is the same all
over the region that is printed, else a step from lane to lane, or a table among the weights.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import reduce
from types import MappingProxyType

import numpy as np

from ...base.errors import UnsupportedError
from ...code.expressions import Slice
from ...code.vocabulary import (
    AcrossLanes,
    Choose,
    Element,
    Inside,
    Lane,
    LoadFrom,
    Name,
    OnGrid,
    Operand,
    Operation,
    Sum,
    Texel,
    Value,
    type_of,
)
from ...model.layout import LINE_FLOATS
from .index_analysis import Known
from .ir import FLOAT, I32, I64, Register
from .kernel_context import KernelContext, Region
from .lanes import LONGEST_STEP, Affine, FloatValue, IntValue, LaneCondition, Lanes, Near, is_affine
from .native_elementwise import FLOAT_CONDITIONS
from .planes import MARGIN_FLOATS

Texels = tuple[FloatValue, ...]  # the lanes of a vec4, each for all pixels
_CONDITIONS = MappingProxyType({"less": "slt", "at least": "sge", "at most": "sle", "equal": "eq"})
_INT_INSTRUCTIONS = MappingProxyType(
    {"multiply": "mul", "divide": "sdiv", "remainder": "srem", "minimum": "smin", "maximum": "smax"}
)
_FARTHEST = MARGIN_FLOATS - LONGEST_STEP * LINE_FLOATS  # that a place outside of a map may be read


class PositionPrinter(ABC):
    """Prints positions for one block of pixels."""

    def __init__(
        self, lanes: Lanes, context: KernelContext, region: Region, first_column: Affine, ints: Mapping[str, IntValue]
    ) -> None:
        """`ints` are those that surround the code, such as the first row."""
        self.lanes = lanes
        self.f = lanes.f
        self.context = context
        self.region = region
        self._x = first_column  # of the block
        self._ints = dict(ints)
        self._declared: dict[str, Operand] = {}

    @abstractmethod
    def texels(self, value: Operand) -> Texels:
        """The lanes of a vector."""

    # Ints and conditions ----------------------------------------------------------------------------------------------

    def _columns(self, value: Operand) -> Known | None:
        """What a value is in each column of the region, if the column alone decides."""
        known = self.context.outline.columns.of(value)
        if known is None or not known.ndim:
            return known
        first, last = self.region.columns
        return known[first : last + 1]

    def _rows(self, value: Operand) -> Known | None:
        known = self.context.outline.rows.of(value)
        return known if known is None or not known.ndim else known[self.region.groups]

    def _int(self, value: Operand, where: Known | None = None) -> IntValue:
        """An int; `where` says in which columns of the region it counts."""
        if not isinstance(value, Value):
            return Affine(None, int(value))
        if isinstance(value, Slice):
            return self._int(value.at)
        if isinstance(value, Name) and value.name in self._ints:
            return self._ints[value.name]
        if where is not None and isinstance(value, Name | Operation | Texel | Sum):
            return self._counted_int(value, where)
        key = ("int", value)
        return self.lanes.once(key, lambda: self._int_of(value))

    def _counted_int(self, value: Value, where: Known) -> IntValue:
        columns = self._columns(value)
        if columns is not None and columns.ndim:
            stretched = _stretched(columns, where)
            return self._int_of_columns(columns if stretched is None else stretched)
        if isinstance(value, Operation) and value.operation == "add":
            left, right = (self._int(each, where) for each in value.operands)
            return self.lanes.add(left, right)
        if isinstance(value, Texel):
            slices = self.lanes.times(self._int(value.at), value.pixels)
            return self.lanes.add(slices, self._int(value.pixel, where))
        if isinstance(value, Name) and value.name in self._declared:
            return self._int(self._declared[value.name], where)
        return self._int(value)

    def _int_of(self, value: Value) -> IntValue:
        columns = self._columns(value)
        if columns is not None:
            return self._int_of_columns(columns) if columns.ndim else Affine(None, int(columns))
        rows = self._rows(value)
        if rows is not None:
            found = self._int_of_rows(rows)
            if found is not None:
                return found
        if isinstance(value, Name):
            return self._int(self._declared[value.name])
        if isinstance(value, Operation):
            return self._int_operation(value)
        if isinstance(value, Sum):
            total: IntValue = Affine(None, value.constant)
            for term, factor in value.terms:
                total = self.lanes.add(total, self.lanes.times(self._int(term), factor))
            return total
        if isinstance(value, Texel):
            return self.lanes.add(self.lanes.times(self._int(value.at), value.pixels), self._int(value.pixel))
        if isinstance(value, Element):
            return self._element(value)
        raise UnsupportedError(f"{type(value).__name__} has no code for the CPU")

    def _int_of_columns(self, columns: Known) -> IntValue:
        """A step from lane to lane, a place near another one, or anything from a table."""
        x, (first, _) = self._x, self.region.columns
        if (affine := is_affine(columns)) is not None:
            step, start = affine
            return self.lanes.add(self.lanes.times(x._replace(step=1), step), Affine(None, start - step * first))
        whole = np.zeros(max(self.lanes.count, first + len(columns)), np.int32)
        whole[first : first + len(columns)] = columns
        whole[first + len(columns) :] = columns[-1]
        place = self.context.tables.place(whole)
        address = self.lanes.address(self.context.weights, x.register, x.constant + place)
        every = self.f.load(self.lanes.int_kind, address)
        windows = np.lib.stride_tricks.sliding_window_view(whole[first:], min(self.lanes.count, len(whole) - first))
        spread = windows - windows[:, :1]
        if spread.min() < 0 or spread.max() >= self.lanes.count:
            return every
        base = self.f.load(I32, address)
        offsets = self.f.binary("sub", every, self.f.splat(base, self.lanes.count))
        return Near(self.f.convert("sext", base, I64), 0, offsets)

    def _int_of_rows(self, rows: Known) -> IntValue | None:
        """A number, or one that rises with the rows; None if code has to compute it."""
        if not rows.ndim or (rows == rows[0]).all():
            return Affine(None, int(rows if not rows.ndim else rows[0]))
        starts, y = self.context.rows[self.region.groups], self._ints["y0"]
        step = (int(rows[1]) - int(rows[0])) // (int(starts[1]) - int(starts[0]))
        first = int(rows[0]) - step * int(starts[0])
        if not (rows == starts * step + first).all():
            return None
        return self.lanes.add(self.lanes.times(y, step), Affine(None, first))

    def _int_operation(self, value: Operation) -> IntValue:
        operation, operands = value.operation, value.operands
        if operation == "int":
            if type_of(operands[0]) == "bool":
                return self.lanes.to_ints(self._truth(operands[0]))
            return self.lanes.to_ints(self._float(operands[0]))
        parts = [self._int(each) for each in operands]
        if operation == "add":
            return self.lanes.add(parts[0], parts[1])
        if operation == "subtract":
            return self.lanes.add(parts[0], self.lanes.times(parts[1], -1))
        if operation == "clamp":
            return self.lanes.int_operation("smin", self.lanes.int_operation("smax", parts[0], parts[1]), parts[2])
        if operation == "multiply":
            for one, other in (parts, parts[::-1]):
                if isinstance(other, Affine) and other.register is None and not other.step:
                    return self.lanes.times(one, other.constant)
        return self.lanes.int_operation(_INT_INSTRUCTIONS[operation], parts[0], parts[1])

    def _element(self, value: Element) -> IntValue:
        total: IntValue = Affine(None, value.base)
        scale = 1
        for at, length in zip(value.at[::-1], (*value.lengths[::-1], 1), strict=True):
            total = self.lanes.add(total, self.lanes.times(self._int(at), scale))
            scale *= length
        return total

    def _condition(self, value: Operand) -> LaneCondition:
        if isinstance(value, bool):
            return value
        return self.lanes.once(("bool", value), lambda: self._condition_of(value))

    def _condition_of(self, value: Operand) -> LaneCondition:
        columns, rows = self._columns(value), self._rows(value)
        if columns is not None:
            return self._condition_of_columns(columns) if columns.ndim else bool(columns)
        if rows is not None and (rows == rows.flat[0]).all():
            return bool(rows.flat[0])
        if isinstance(value, Name):
            return self._condition(self._declared[value.name])
        if isinstance(value, Inside):
            place = self._int(value.value)
            return self.lanes.compare_ints("ult", place, Affine(None, value.size))
        if isinstance(value, OnGrid):
            return self._on_grid(value)
        assert isinstance(value, Operation)
        if value.operation == "both":
            left, right = map(self._condition, value.operands)
            return self.lanes.both(left, right)
        if "float" in map(type_of, value.operands):
            left, right = (self.lanes.floats(self._float(each)) for each in value.operands)
            return self.lanes.math.compare(FLOAT_CONDITIONS[value.operation], left, right)
        left_int, right_int = map(self._int, value.operands)
        return self.lanes.compare_ints(_CONDITIONS[value.operation], left_int, right_int)

    def _on_grid(self, value: OnGrid) -> LaneCondition:
        place, stride = self._int(value.value), Affine(None, value.stride)
        zero = Affine(None, 0)
        is_multiple = self.lanes.compare_ints("eq", self.lanes.int_operation("srem", place, stride), zero)
        inside = self.lanes.compare_ints("ult", place, Affine(None, value.stride * value.size))
        return self.lanes.both(inside, is_multiple)

    def _condition_of_columns(self, columns: Known) -> LaneCondition:
        if (columns == columns[0]).all():
            return bool(columns[0])
        x, (first, last) = self._x, self.region.columns
        places = np.flatnonzero(columns) + first
        if len(places) == places[-1] - places[0] + 1:
            behind = int(places[-1]) + 1
            lane = Affine(x.register, x.constant, 1)
            return self.lanes.within(
                lane, int(places[0]) if places[0] > first else 0, behind if behind <= last else None
            )
        number = self._int_of_columns(columns.astype(np.int64))
        return self.lanes.compare_ints("ne", number, Affine(None, 0))

    def _where(self, valid: Operand) -> Known | None:
        """In which columns of the region a condition may hold; None in all."""
        columns = self._columns(valid)
        if columns is not None:
            return columns
        if isinstance(valid, Name) and valid.name in self._declared:
            return self._where(self._declared[valid.name])
        if isinstance(valid, Operation) and valid.operation == "both":
            known = [each for each in map(self._where, valid.operands) if each is not None and each.ndim]
            return reduce(np.logical_and, known) if known else None
        return None

    def _below(self, value: IntValue, limit: int) -> LaneCondition:
        if isinstance(value, Affine) and value.register is None and not value.step:
            return value.constant < limit
        return self.lanes.compare_ints("slt", value, Affine(None, limit))

    # Floats -----------------------------------------------------------------------------------------------------------

    def _float(self, value: Operand) -> FloatValue:
        if isinstance(value, int | float):
            return float(value)
        if isinstance(value, Lane | AcrossLanes):  # of a variable, which may have another value now
            return self._float_of(value)
        return self.lanes.once(("float", value), lambda: self._float_of(value))

    def _float_of(self, value: Value) -> FloatValue:
        columns, rows = self._columns(value), self._rows(value)
        if columns is not None:
            return self._float_of_columns(columns)
        if rows is not None and (rows == rows.flat[0]).all():
            return float(rows.flat[0])
        if isinstance(value, Name):
            return self._float(self._declared[value.name])
        if isinstance(value, Lane):
            return self._lane(value)
        if isinstance(value, AcrossLanes):
            texels = self.texels(value.value)
            return reduce(lambda left, right: self._arithmetic(value.operation, left, right), texels)
        if isinstance(value, Choose):
            condition = self._condition(value.condition)
            return self.lanes.select(condition, self._float(value.value), self._float(value.other))
        assert isinstance(value, Operation)
        if value.operation == "float":
            (operand,) = value.operands
            return self._truth(operand) if type_of(operand) == "bool" else self.lanes.to_floats(self._int(operand))
        return self._arithmetic(value.operation, *map(self._float, value.operands))

    def _float_of_columns(self, columns: Known) -> FloatValue:
        if not columns.ndim or (columns == columns[0]).all():
            return float(columns.flat[0])
        x, (first, _) = self._x, self.region.columns
        whole = np.zeros(max(self.lanes.count, first + len(columns)), np.float32)
        whole[first : first + len(columns)] = columns
        place = self.context.tables.place(whole)
        return self.f.load(self.lanes.kind, self.lanes.address(self.context.weights, x.register, x.constant + place))

    def _truth(self, value: Operand) -> FloatValue:
        """1.0 where a condition holds, else 0.0."""
        condition = self._condition(value)
        if isinstance(condition, bool):
            return float(condition)
        return self.lanes.select(self.lanes.mask(condition), 1.0, 0.0)

    def _lane(self, value: Lane) -> FloatValue:
        if isinstance(value.value, LoadFrom) and not isinstance(value.lane, int):
            return self._channel(value.value, value.lane)
        texels = self.texels(value.value)
        if isinstance(value.lane, int):
            return texels[value.lane]
        place, found = self._int(value.lane), texels[0]
        for lane in range(1, 4):
            found = self.lanes.select(self.lanes.compare_ints("eq", place, Affine(None, lane)), texels[lane], found)
        return found

    def _channel(self, value: LoadFrom, channel: Operand) -> FloatValue:
        """A float of the plane with this number."""
        memory = self.context.memories[value.source]
        at = self.lanes.times(self._int(value.at), memory.scale)
        place = self.lanes.add(at, self.lanes.times(self._int(channel), memory.step))
        return self.lanes.load_channel(memory._replace(scale=1), place, 0)

    def _arithmetic(self, operation: str, *operands: FloatValue) -> FloatValue:
        """Arithmetic on floats; on what all lanes share it is done once."""
        shared = all(
            isinstance(each, float) or (isinstance(each, Register) and each.type == FLOAT) for each in operands
        )
        math = self.lanes.scalar_math if shared else self.lanes.math
        parts = [self.lanes.one_float(each) if shared else self.lanes.floats(each) for each in operands]
        return math.arithmetic(operation, *parts)


def _stretched(columns: Known, where: Known) -> Known | None:
    """Numbers in equal steps that are the same where they count; None if there are none, or they lead too far."""
    places = np.flatnonzero(where)
    if not len(places):
        return np.zeros_like(columns)
    first, last = int(places[0]), int(places[-1])
    step = 1 if first == last else (int(columns[last]) - int(columns[first])) // (last - first)
    found = columns[first] + step * (np.arange(len(columns)) - first)
    is_near = found.min() >= columns.min() - _FARTHEST and found.max() <= columns.max() + _FARTHEST
    return found if is_near and np.array_equal(found[places], columns[places]) else None

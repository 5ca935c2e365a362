"""Statements of kernels (code.py) go in, LLVM's instructions on lanes of pixels come out, as print_glsl.py writes GLSL.

Variables are registers from the start: where loops and branches meet, those that change get a phi. Loads stand where
they are first needed. What a column or a row alone decides was computed before (survey.py), and is a number where it is
the same all over the region that is printed, a step from lane to lane, or a table among the weights.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from types import MappingProxyType
from typing import Any

import numpy as np

from ..code import (
    AcrossLanes,
    AddTo,
    Assign,
    Choose,
    Declare,
    Element,
    Elementwise,
    ForEach,
    Inside,
    Keep,
    Lane,
    LoadFrom,
    Name,
    OnGrid,
    Operand,
    Operation,
    Repeated,
    Reserve,
    Splat,
    Statement,
    StoreTo,
    Sum,
    Tap,
    Texel,
    Value,
    Vector,
    Weight,
    When,
    type_of,
    values_in,
)
from ..errors import UnsupportedError
from ..expressions import Slice
from .elementwise import elementwise_vectors
from .ir import FLOAT, I1, I32, I64, Register
from .lanes import LONGEST_STEP, Affine, Condition, FloatValue, IntValue, Lanes, Memory, Near, is_affine
from .planes import LINE_FLOATS, MARGIN_FLOATS
from .survey import Known, Outline

Texels = tuple[FloatValue, ...]  # the lanes of a vec4, each for all pixels
_LAZY = (LoadFrom, Tap, Weight)
_CONDITIONS = MappingProxyType({"less": "slt", "at least": "sge", "at most": "sle", "equal": "eq"})
_INT_INSTRUCTIONS = MappingProxyType(
    {"multiply": "mul", "divide": "sdiv", "remainder": "srem", "minimum": "smin", "maximum": "smax"}
)


FARTHEST = MARGIN_FLOATS - LONGEST_STEP * LINE_FLOATS  # that a place outside of a map may be read


class Tables:
    """What is the same for all pixels of a column, behind the weights of a kernel; positions are in floats."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._pieces: list[Known] = []
        self._places: dict[bytes, int] = {}

    def place(self, values: Known) -> int:
        """Where a table of int32 or float32 begins."""
        key = values.tobytes()
        if key not in self._places:
            self._places[key] = self._start
            self._pieces.append(values.view(np.float32))
            self._start += len(values)
        return self._places[key]

    @property
    def data(self) -> Known:
        """All tables, one behind the other."""
        return np.concatenate(self._pieces) if self._pieces else np.zeros(0, np.float32)


@dataclass(frozen=True)
class Region:
    """Part of a map: columns first ... last, and the first rows of groups by number."""

    columns: tuple[int, int]
    groups: slice


@dataclass(frozen=True)
class Scene:
    """What surrounds the code of a kernel."""

    outline: Outline
    rows: Known  # the first row of each group
    tables: Tables
    weights: Register
    memories: Mapping[str, Memory]  # by name
    plain: frozenset[str]  # outputs that are one plane
    channel: Register | None = None  # of a slice, where channels are computed one by one: pointers are those of the one


class LanePrinter:
    """Prints statements for one block of pixels after the other."""

    def __init__(
        self,
        lanes: Lanes,
        scene: Scene,
        region: Region,
        first_column: Affine,
        ints: Mapping[str, IntValue],
        mask: Register | None,
    ) -> None:
        """`ints` are those that surround the code, such as the first row."""
        self.lanes = lanes
        self.f = lanes.f
        self.scene = scene
        self.region = region
        self.mask = mask  # pixels that the block has
        self._x = first_column  # of the block
        self._ints = dict(ints)
        self._declared: dict[str, Operand] = {}
        self._variables: dict[str, Texels] = {}
        self._values: dict[str, Any] = {}  # of names that never change
        self._changing: frozenset[str] = frozenset()
        self._strided: dict[tuple[str, str, int], dict[int, tuple[FloatValue, IntValue]]] = {}
        channel = scene.channel
        weights = self.f.hidden(scene.weights) if channel is None else self.f.at(scene.weights, channel)
        self._weights = Memory(weights, 4, 1)
        self._together = 4 if scene.channel is None else 1  # channels of a slice

    # Statements -------------------------------------------------------------------------------------------------------

    def print(self, statements: Sequence[Statement]) -> None:
        """Everything for one block."""
        self._changing = frozenset(_changed(statements))
        with self.lanes.block():
            self._all(statements)
            self._flush()

    def _all(self, statements: Sequence[Statement]) -> None:
        for adds, group in groupby(statements, lambda each: isinstance(each, AddTo)):
            if adds:
                self._add_to([each for each in group if isinstance(each, AddTo)])
            else:
                for each in group:
                    self._statement(each)

    def _statement(self, statement: Statement) -> None:
        if isinstance(statement, Declare):
            self._declare(statement)
        elif isinstance(statement, Assign):
            self._variables[statement.name.name] = self._changed_value(statement.value)
        elif isinstance(statement, Reserve):
            self._variables |= dict.fromkeys((name.name for name in statement.names), (0.0,) * self._together)
        elif isinstance(statement, StoreTo):
            self._store(statement)
        elif isinstance(statement, ForEach):
            self._for_each(statement.over, statement.body)
        elif isinstance(statement, When):
            self._when(statement)
        else:
            raise UnsupportedError(f"{type(statement).__name__} has no code for the CPU")

    def _declare(self, statement: Declare) -> None:
        name, value = statement.name, statement.value
        if name.name in self._changing:
            self._variables[name.name] = self._changed_value(value)
        elif name.type in ("int", "bool", "float") or isinstance(value, _LAZY):
            self._declared[name.name] = value
        else:
            self._values[name.name] = self._texels(value)

    def _changed_value(self, value: Operand) -> Texels:
        return self._texels(value)

    def _add_to(self, statements: Sequence[AddTo]) -> None:
        """Sums of products, term by term, so that sums whose terms have the same weight take it from one register."""
        sums = [(each.name.name, list(_terms(each.value))) for each in statements]
        for number in range(max(len(terms) for _, terms in sums)):
            terms_now = [(name, terms[number]) for name, terms in sums if number < len(terms)]
            for _, same in groupby(terms_now, lambda each: _weight_of(each[1])):
                self._add_terms(list(same))

    def _add_terms(self, terms: Sequence[tuple[str, Operand]]) -> None:
        products = [(name, self._factors(term)) for name, term in terms]
        totals = {name: list(self._variables[name]) for name, _ in terms}
        for lane in range(self._together):
            for name, (left, right) in products:
                total = self.lanes.floats(totals[name][lane])
                if right is None:
                    totals[name][lane] = self.lanes.math.add(total, self.lanes.floats(left[lane]))
                else:
                    first, second = self.lanes.floats(left[lane]), self.lanes.floats(right[lane])
                    totals[name][lane] = self.f.fma(first, second, total)
        self._variables |= {name: tuple(total) for name, total in totals.items()}

    def _factors(self, term: Operand) -> tuple[Texels, Texels | None]:
        if isinstance(term, Operation) and term.operation == "multiply":
            left, right = term.operands
            return self._texels(left), self._texels(right)
        return self._texels(term), None

    # Blocks -----------------------------------------------------------------------------------------------------------

    def _for_each(self, over: Sequence[tuple[Name, int]], body: Sequence[Statement]) -> None:
        if not over:
            self._all(body)
            return
        (name, count), *inner = over
        if count == 1:
            self._ints[name.name] = Affine(None, 0)
            with self.lanes.block():
                self._for_each(inner, body)
            return
        self._force()
        carried = [each for each in dict.fromkeys(_changed(body)) if each in self._variables]
        before = [self.lanes.floats(value) for each in carried for value in self._variables[each]]
        with self.f.repeat(count, before) as (index, current, following):
            self._ints[name.name] = Affine(index, 0)
            self._set(carried, current)
            with self.lanes.block(), self._own_values():
                self._for_each(inner, body)
                following += [self.lanes.floats(value) for each in carried for value in self._variables[each]]
        self._set(carried, following)

    def _when(self, statement: When) -> None:
        condition = self._condition(statement.condition)
        if isinstance(condition, bool):
            self._all(statement.body if condition else ())
            return
        self._force()
        carried = [each for each in dict.fromkeys(_changed(statement.body)) if each in self._variables]
        if condition.type != I1:
            self._masked(condition, carried, statement.body)
            return
        before = [self.lanes.floats(value) for each in carried for value in self._variables[each]]
        with self.f.branch(condition, before) as after, self.lanes.block(), self._own_values():
            self._all(statement.body)
            after += [self.lanes.floats(value) for each in carried for value in self._variables[each]]
            self._flush()
        self._set(carried, after)

    def _masked(self, condition: Register, carried: Sequence[str], body: Sequence[Statement]) -> None:
        """Statements for some lanes: what they store and assign counts there."""
        outer, before = self.mask, {each: self._variables[each] for each in carried}
        both = condition if outer is None else self.lanes.both(outer, condition)
        assert isinstance(both, Register)
        self._flush()
        self.mask = both
        self._all(body)
        self._flush()
        self.mask = outer
        for each, values in before.items():
            now = zip(self._variables[each], values, strict=True)
            self._variables[each] = tuple(self.lanes.select(condition, new, old) for new, old in now)

    def _set(self, names: Sequence[str], values: Sequence[Register]) -> None:
        for number, name in enumerate(names):
            self._variables[name] = tuple(values[self._together * number : self._together * (number + 1)])

    def _force(self) -> None:
        """Load what waits to be needed, where it is not in a loop yet."""
        for name, value in list(self._declared.items()):
            if name not in self._values and isinstance(value, _LAZY):
                self._values[name] = self._texels(value)

    @contextmanager
    def _own_values(self) -> Iterator[None]:
        """What is declared or computed inside is forgotten behind."""
        declared, values, variables = dict(self._declared), dict(self._values), set(self._variables)
        yield
        self._declared, self._values = declared, values
        self._variables = {name: value for name, value in self._variables.items() if name in variables}

    # Stores -----------------------------------------------------------------------------------------------------------

    def _store(self, statement: StoreTo) -> None:
        memory = self.scene.memories[statement.target]
        at, value = self._int(statement.at), statement.value
        if statement.target in self.scene.plain:
            values = (self._float(value),) if type_of(value) == "float" else self._texels(value)
            self._store_values(statement.target, memory.pointer, self.lanes.times(at, len(values)), values)
            return
        texels = self._texels(value)
        for channel, each in enumerate(texels):
            place = self.lanes.add(self.lanes.times(at, memory.scale), Affine(None, memory.step * channel))
            self._store_values(statement.target, memory.pointer, place, (each,))

    def _store_values(self, target: str, pointer: Register, at: IntValue, values: Texels) -> None:
        """Values that lie one behind the other, for each lane."""
        if not isinstance(at, Affine):
            for number, value in enumerate(values):
                self.lanes.scatter(pointer, self.lanes.add(at, Affine(None, number)), value, self.mask)
            return
        if at.step in (0, 1) and len(values) == 1:
            self.lanes.store(pointer, at, values[0], self.mask)
            return
        for number, value in enumerate(values):
            place = Affine(at.register, at.constant + number, at.step)
            if at.step in (2, 4) and self.mask is None:
                self._store_strided(target, pointer, place, value)
            elif at.step == 0:
                self.lanes.store(pointer, place, value, None)
            else:
                self.lanes.scatter(pointer, place, value, self.mask)

    def _store_strided(self, target: str, pointer: Register, at: Affine, value: FloatValue) -> None:
        """Wait for the values in between, and store them together."""
        key = (target, at.register.text if at.register else "", at.step)
        waiting = self._strided.setdefault(key, {})
        waiting[at.constant] = (value, at)
        for first in range(at.constant - at.step + 1, at.constant + 1):
            run = range(first, first + at.step)
            if all(place in waiting for place in run):
                parts = self.lanes.interleaved([waiting.pop(place)[0] for place in run])
                for number, part in enumerate(parts):
                    place = Affine(at.register, first + number * self.lanes.count, 1)
                    self.lanes.store(pointer, place, part, None)
                return

    def _flush(self) -> None:
        """Store what has waited in vain."""
        for (target, _, _), waiting in self._strided.items():
            for value, at in waiting.values():
                self.lanes.scatter(self.scene.memories[target].pointer, at, value, self.mask)
        self._strided.clear()

    # Ints and conditions ----------------------------------------------------------------------------------------------

    def _columns(self, value: Operand) -> Known | None:
        """What a value is in each column of the region, if the column alone decides."""
        known = self.scene.outline.columns.of(value)
        if known is None or not known.ndim:
            return known
        first, last = self.region.columns
        return known[first : last + 1]

    def _rows(self, value: Operand) -> Known | None:
        known = self.scene.outline.rows.of(value)
        return known if known is None or not known.ndim else known[self.region.groups]

    def _int(self, value: Operand, where: Known | None = None) -> IntValue:
        """An int; `where` says in which columns of the region it counts."""
        if isinstance(value, int):
            return Affine(None, value)
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
            terms = [self.lanes.times(self._int(term), factor) for term, factor in value.terms]
            return reduce(self.lanes.add, terms, Affine(None, value.constant))
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
        place = self.scene.tables.place(whole)
        address = self.lanes.address(self.scene.weights, x.register, x.constant + place)
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
        starts, y = self.scene.rows[self.region.groups], self._ints["y0"]
        step = (int(rows[1]) - int(rows[0])) // (int(starts[1]) - int(starts[0]))
        first = int(rows[0]) - step * int(starts[0])
        if not np.array_equal(rows, starts * step + first):
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

    def _condition(self, value: Operand) -> Condition:
        if isinstance(value, bool):
            return value
        return self.lanes.once(("bool", value), lambda: self._condition_of(value))

    def _condition_of(self, value: Operand) -> Condition:
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
            how = {"less": "olt", "at least": "oge", "at most": "ole", "equal": "oeq"}[value.operation]
            return self._compare_floats(how, *map(self._float, value.operands))
        left_int, right_int = map(self._int, value.operands)
        return self.lanes.compare_ints(_CONDITIONS[value.operation], left_int, right_int)

    def _on_grid(self, value: OnGrid) -> Condition:
        place, stride = self._int(value.value), Affine(None, value.stride)
        zero = Affine(None, 0)
        is_multiple = self.lanes.compare_ints("eq", self.lanes.int_operation("srem", place, stride), zero)
        inside = self.lanes.compare_ints("ult", place, Affine(None, value.stride * value.size))
        return self.lanes.both(inside, is_multiple)

    def _condition_of_columns(self, columns: Known) -> Condition:
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

    # Floats -----------------------------------------------------------------------------------------------------------

    def _float(self, value: Operand) -> FloatValue:
        if isinstance(value, int | float):
            return float(value)
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
            texels = self._texels(value.value)
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
        place = self.scene.tables.place(whole)
        return self.f.load(self.lanes.kind, self.lanes.address(self.scene.weights, x.register, x.constant + place))

    def _truth(self, value: Operand) -> FloatValue:
        """1.0 where a condition holds, else 0.0."""
        condition = self._condition(value)
        if isinstance(condition, bool):
            return float(condition)
        return self.lanes.select(self.lanes.mask(condition), 1.0, 0.0)

    def _lane(self, value: Lane) -> FloatValue:
        texels = self._texels(value.value)
        if isinstance(value.lane, int):
            return texels[value.lane]
        place, found = self._int(value.lane), texels[0]
        for lane in range(1, 4):
            found = self.lanes.select(self.lanes.compare_ints("eq", place, Affine(None, lane)), texels[lane], found)
        return found

    def _compare_floats(self, how: str, left: FloatValue, right: FloatValue) -> Condition:
        return self.lanes.math.compare(how, self.lanes.floats(left), self.lanes.floats(right))

    def _arithmetic(self, operation: str, *operands: FloatValue) -> FloatValue:
        """Arithmetic on floats; on what all lanes share it is done once."""
        shared = all(
            isinstance(each, float) or (isinstance(each, Register) and each.type == FLOAT) for each in operands
        )
        math = self.lanes.scalar_math if shared else self.lanes.math
        parts = [self.lanes.one_float(each) if shared else self.lanes.floats(each) for each in operands]
        if operation in ("add", "subtract", "multiply", "divide"):
            return self.f.binary(
                f"f{ {'subtract': 'sub', 'multiply': 'mul', 'divide': 'div'}.get(operation, operation) }", *parts
            )
        if operation == "floor":
            return math.call("floor", *parts)
        if operation == "fraction":
            return math.sub(parts[0], math.call("floor", parts[0]))
        if operation == "clamp":
            return math.smaller(parts[2], math.larger(parts[1], parts[0]))
        return (math.larger if operation == "maximum" else math.smaller)(parts[1], parts[0])

    # Vectors ----------------------------------------------------------------------------------------------------------

    def _texels(self, value: Operand) -> Texels:
        """The lanes of a vector; those of a float or a number are that."""
        return _WORDS[type(value)](self, value)

    def _name(self, value: Name) -> Texels:
        name = value.name
        if name in self._variables:
            return self._variables[name]
        if name in self._values:
            found: Texels = self._values[name]
            return found
        if value.type == "float":
            return (self._float(value),) * self._together
        self._values[name] = self._texels(self._declared[name])
        return self._name(value)

    def _operation(self, value: Operation) -> Texels:
        if value.type == "float":
            return (self._float(value),) * self._together
        operands = value.operands
        if value.operation == "add":
            for term, product in (operands, operands[::-1]):
                if isinstance(product, Operation) and product.operation == "multiply" and product.type == "vec4":
                    return self._multiply_add(*product.operands, term)
        parts = [self._texels(each) for each in operands]
        return tuple(self._arithmetic(value.operation, *each) for each in zip(*parts, strict=True))

    def _multiply_add(self, *operands: Operand) -> Texels:
        parts = zip(*map(self._texels, operands), strict=True)
        return tuple(self.f.fma(*map(self.lanes.floats, each)) for each in parts)

    def _elementwise(self, value: Elementwise) -> Texels:
        operands = [self._texels(each) for each in value.operands]
        found: dict[tuple[str, ...], Register] = {}
        results = []
        for each in zip(*operands, strict=True):
            parts = [self.lanes.floats(part) for part in each]
            key = tuple(part.text for part in parts)
            if key not in found:
                found[key] = elementwise_vectors(self.f, value, parts)
            results.append(found[key])
        return tuple(results)

    def _keep(self, value: Keep) -> Texels:
        texels, other = self._texels(value.value), 0.0 if value.other is None else value.other
        first = self.lanes.times(self._int(value.at), 4)
        kept = []
        for lane, each in enumerate(texels):
            channel = Affine(None, lane) if self.scene.channel is None else Affine(self.scene.channel, 0)
            holds = self._below(self.lanes.add(first, channel), value.channels)
            kept.append(self.lanes.select(holds, each, other))
        return tuple(kept)

    def _below(self, value: IntValue, limit: int) -> Condition:
        if isinstance(value, Affine) and value.register is None and not value.step:
            return value.constant < limit
        return self.lanes.compare_ints("slt", value, Affine(None, limit))

    def _tap(self, value: Tap) -> Texels:
        """Where a window lies outside of its map, what stands in memory there is read and not used."""
        condition = self._condition(value.valid)
        if condition is False:
            return self._texels(value.outside)
        where = self._where(value.valid)
        inside = value.value
        if isinstance(inside, LoadFrom) and where is not None and where.ndim:
            texels = self.lanes.load(self.scene.memories[inside.source], self._int(inside.at, where), self._together)
        else:
            texels = self._texels(inside)
        if condition is True:
            return texels
        outside = zip(texels, self._texels(value.outside), strict=True)
        mask = self.lanes.mask(condition)
        return tuple(self.lanes.select(mask, each, other) for each, other in outside)

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

    def _choose(self, value: Choose) -> Texels:
        condition = self._condition(value.condition)
        if isinstance(condition, bool):
            return self._texels(value.value if condition else value.other)
        parts = zip(self._texels(value.value), self._texels(value.other), strict=True)
        return tuple(self.lanes.select(condition, *each) for each in parts)

    def _load(self, value: LoadFrom) -> Texels:
        return self.lanes.load(self.scene.memories[value.source], self._int(value.at), self._together)

    def _weight(self, value: Weight) -> Texels:
        return self.lanes.load(self._weights, self._int(value.at), self._together)


def _stretched(columns: Known, where: Known) -> Known | None:
    """Numbers in equal steps that are the same where they count; None if there are none, or they lead too far."""
    places = np.flatnonzero(where)
    if not len(places):
        return np.zeros_like(columns)
    first, last = int(places[0]), int(places[-1])
    step = 1 if first == last else (int(columns[last]) - int(columns[first])) // (last - first)
    found = columns[first] + step * (np.arange(len(columns)) - first)
    is_near = found.min() >= columns.min() - FARTHEST and found.max() <= columns.max() + FARTHEST
    return found if is_near and np.array_equal(found[places], columns[places]) else None


def by_channels(statements: Iterable[Statement]) -> bool:
    """Whether each channel of a slice is computed from the same channel of others."""
    return not any(
        isinstance(v, Lane | AcrossLanes | Vector | Repeated) for each in statements for v in values_in(each)
    )


def _terms(value: Operand) -> Iterator[Operand]:
    """What is added, from the first to the last."""
    if isinstance(value, Operation) and value.operation == "add":
        yield from _terms(value.operands[0])
        yield value.operands[1]
    else:
        yield value


def _weight_of(term: Operand) -> Operand | None:
    return term.operands[1] if isinstance(term, Operation) and term.operation == "multiply" else None


def _changed(statements: Iterable[Statement]) -> Iterator[str]:
    """Names of variables that get other values."""
    for statement in statements:
        if isinstance(statement, AddTo | Assign):
            yield statement.name.name
        elif isinstance(statement, ForEach | When):
            yield from _changed(statement.body)


_WORDS: Mapping[type, Callable[[LanePrinter, Any], Texels]] = MappingProxyType(
    {
        int: lambda printer, value: (float(value),) * printer._together,
        float: lambda printer, value: (value,) * printer._together,
        Name: LanePrinter._name,
        Operation: LanePrinter._operation,
        Lane: lambda printer, value: (printer._lane(value),) * 4,
        AcrossLanes: lambda printer, value: (printer._float(value),) * 4,
        Vector: lambda printer, value: tuple(printer._float(lane) for lane in value.lanes),
        Splat: lambda printer, value: (value.value,) * printer._together,
        Repeated: lambda printer, value: (printer._texels(value.value)[0],) * 4,
        Elementwise: LanePrinter._elementwise,
        Keep: LanePrinter._keep,
        Choose: LanePrinter._choose,
        Tap: LanePrinter._tap,
        LoadFrom: LanePrinter._load,
        Weight: LanePrinter._weight,
    }
)

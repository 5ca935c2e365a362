"""Prints the statements of kernels as LLVM's instructions on lanes of pixels.

Variables are registers from the start: where loops and branches meet, those that change get a phi. Loads stand where
they are first needed. Where pixels lie, and which count, is printed by print_positions.py.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count, groupby
from types import MappingProxyType
from typing import Any

from ...base.errors import UnsupportedError
from ...code.vocabulary import (
    ZEROS,
    AcrossLanes,
    AddTo,
    Argument,
    Assign,
    Bits,
    ByteProducts,
    Choose,
    ChooseLanes,
    Declare,
    Elementwise,
    ForEach,
    Keep,
    Lane,
    LoadFrom,
    Name,
    Operand,
    Operation,
    PairProducts,
    Repeated,
    Requantized,
    Reserve,
    Splat,
    Statement,
    StoreTo,
    Tap,
    Texel,
    Vector,
    Weight,
    When,
    blocks_in,
    type_of,
    values_in,
)
from ...kernels.emit import SLICE
from ...model.layout import BYTE_VALUES
from .bytes_code import ByteCode, word_of
from .ir import I1, Register
from .kernel_context import KernelContext, Region
from .lanes import Affine, ByteLane, FloatValue, IntValue, Lanes, Limited, PlaneMemory
from .native_elementwise import FLOAT_CONDITIONS, elementwise_vectors
from .pairs_code import PairCode
from .panels import PANEL
from .print_positions import PositionPrinter, Texels
from .quads import QuadSum, quad_sum
from .runs import EVEN_STEP, RunPixel, Spread, pixel_of_run, store_apart
from .steps_code import numbers_of_sum
from .vector_math import OwnNumbers

_LAZY = (LoadFrom, Tap, Weight)
_ACROSS = frozenset({Lane, AcrossLanes, Vector, Repeated, ByteProducts, PairProducts})  # of channels


class LanePrinter(PositionPrinter):
    """Prints statements for one block of pixels after the other."""

    def __init__(
        self,
        lanes: Lanes,
        context: KernelContext,
        region: Region,
        first_column: Affine,
        ints: Mapping[str, IntValue],
        mask: Register | None,
    ) -> None:
        """`mask` says which pixels the block has, where they are not as many as there are lanes."""
        super().__init__(lanes, context, region, first_column, ints)
        self.mask = mask
        self._variables: dict[str, Texels] = {}
        self._values: dict[str, Texels] = {}  # of names that never change
        self._changing: frozenset[str] = frozenset()
        self._byte_sums: frozenset[str] = frozenset()
        self._strided: dict[tuple[str, str, int], dict[int, tuple[FloatValue, IntValue]]] = {}
        channel = context.channel
        weights = self.f.hidden(context.weights) if channel is None else self.f.at(context.weights, channel)
        self._weights = PlaneMemory(weights, 4, 1)
        self._bytes = ByteCode(lanes, context.target)
        self._pairs = PairCode(lanes)
        self._together = 4 if context.channel is None else 1  # channels of a slice

    # Statements -------------------------------------------------------------------------------------------------------

    def print(self, statements: Sequence[Statement]) -> None:
        """Everything for one block."""
        self._changing = frozenset(_changed(statements))
        self._byte_sums = frozenset(_byte_sums(statements))
        with self.lanes.block():
            self._all(statements)
            self._flush()

    def _all(self, statements: Sequence[Statement]) -> None:
        for adds, group in groupby(statements, lambda each: isinstance(each, AddTo)):
            if adds:
                self._add_all([each for each in group if isinstance(each, AddTo)])
            else:
                for each in group:
                    self._statement(each)

    def _statement(self, statement: Statement) -> None:
        if isinstance(statement, Declare):
            self._declare(statement)
        elif isinstance(statement, Assign):
            self._variables[statement.name.name] = self.texels(statement.value)
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
            self._variables[name.name] = self.texels(value)
        elif name.type in ("int", "bool", "float") or isinstance(value, _LAZY):
            self._declared[name.name] = value
        else:
            self._values[name.name] = self.texels(value)

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

    def _add_all(self, statements: Sequence[AddTo]) -> None:
        for form, same in groupby(statements, lambda each: _form(each.value)):
            if form is ByteProducts:
                self._add_bytes([(each.name.name, each.value) for each in same if isinstance(each.value, ByteProducts)])
            elif form is PairProducts:
                self._add_pairs([(each.name.name, each.value) for each in same if isinstance(each.value, PairProducts)])
            else:
                self._add_to(list(same))

    def _add_pairs(self, products: Sequence[tuple[str, PairProducts]]) -> None:
        """Sums of products in pairs: those that have the same weights take them from one register."""
        for words, same in groupby(products, lambda each: each[1].words):
            sums = [(name, self._pairs.words(self.texels(value.value), value.channels)) for name, value in same]
            totals = {name: list(self._variables[name]) for name, _ in sums}
            for k, weights in enumerate(map(self.texels, words)):
                for lane in range(4):
                    for name, pairs in sums:
                        total = self.lanes.floats(totals[name][lane])
                        totals[name][lane] = self._pairs.add(total, pairs[k], weights[lane])
            self._variables |= {name: tuple(total) for name, total in totals.items()}

    def _add_bytes(self, products: Sequence[tuple[str, ByteProducts]]) -> None:
        """Sums of products of bytes: those that have the same weights take them from one register."""
        for _, same in groupby(products, lambda each: each[1].words):
            sums = [(name, value, self._word(value.value, value.low)) for name, value in same]
            _, first, _ = sums[0]
            weights = [self.texels(word) for word in first.words]
            totals = {name: [self.lanes.wholes(total) for total in self._variables[name]] for name, _, _ in sums}
            for lane in range(4):
                for k, texel in enumerate(weights):
                    part = lane if first.by_lanes and first.together == 1 else lane % 2 if first.by_lanes else k
                    for name, value, word in sums:
                        added = self._bytes.add(totals[name][lane], word, texel[lane], value.together, part)
                        totals[name][lane] = added
            self._variables |= {name: tuple(total) for name, total in totals.items()}

    def _word(self, value: Operand, low: int) -> Register:
        """A slice as bytes."""
        found = self.context.lows.get(low) or self._own_int(("low", low), low)
        return self._bytes.word(self.texels(value), found)

    def _factors(self, term: Operand) -> tuple[Texels, Texels | None]:
        if isinstance(term, Operation) and term.operation == "multiply":
            left, right = term.operands
            return self.texels(left), self.texels(right)
        return self.texels(term), None

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
        self._settle()
        carried = [each for each in dict.fromkeys(_changed(body)) if each in self._variables]
        before = self._carried(carried)
        with self.f.repeat(count, before) as (index, current, following):
            self._ints[name.name] = Affine(index, 0)
            self._set(carried, current)
            with self.lanes.block(), self._own_values():
                self._for_each(inner, body)
                following += self._carried(carried)
                self._flush()
        self._set(carried, following)

    def _when(self, statement: When) -> None:
        if statement.otherwise:
            raise UnsupportedError("a branch with two sides has no code for the CPU")
        condition = self._condition(statement.condition)
        if isinstance(condition, bool):
            self._all(statement.body if condition else ())
            return
        self._settle()
        carried = [each for each in dict.fromkeys(_changed(statement.body)) if each in self._variables]
        if condition.type != I1:
            self._masked(condition, carried, statement.body)
            return
        before = self._carried(carried)
        with self.f.branch(condition, before) as after, self.lanes.block(), self._own_values():
            self._all(statement.body)
            after += self._carried(carried)
            self._flush()
        self._set(carried, after)

    def _carried(self, names: Sequence[str]) -> list[Register]:
        """Variables' lanes one behind the other: sums of products of bytes as ints, all others as floats."""
        found = list[Register]()
        for name in names:
            settled = self.lanes.wholes if name in self._byte_sums else self.lanes.floats
            found += map(settled, self._variables[name])
        return found

    def _masked(self, condition: Register, carried: Sequence[str], body: Sequence[Statement]) -> None:
        """Statements for some lanes: what they store and assign counts there."""
        outer, before = self.mask, {each: self._variables[each] for each in carried}
        both = condition if outer is None else self.lanes.both(outer, condition)
        assert isinstance(both, Register)
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

    def _settle(self) -> None:
        """Load what waits to be needed, and store what waits for others, in front of a block of its own."""
        self._flush()
        for name, value in list(self._declared.items()):
            if name not in self._values and isinstance(value, _LAZY):
                self._values[name] = self.texels(value)

    @contextmanager
    def _own_values(self) -> Iterator[None]:
        """What is declared or computed inside is forgotten behind."""
        declared, values, variables = dict(self._declared), dict(self._values), set(self._variables)
        yield
        self._declared, self._values = declared, values
        self._variables = {name: value for name, value in self._variables.items() if name in variables}

    # Stores -----------------------------------------------------------------------------------------------------------

    def _store(self, statement: StoreTo) -> None:
        memory = self.context.memories[statement.target]
        at, value = self._int(statement.at), statement.value
        if statement.target in self.context.plain:
            values = (self._float(value),) if type_of(value) == "float" else self.texels(value)
            self._store_values(statement.target, memory.pointer, self.lanes.times(at, len(values)), values)
            return
        texels = self.texels(value)
        if memory.low is not None:
            word = self.f.convert("bitcast", self._bytes.word(texels, memory.low), self.lanes.kind)
            self._store_values(statement.target, memory.pointer, self.lanes.times(at, memory.scale), (word,))
            return
        if memory.in_pairs:
            words = self._pairs.words(texels, self._together)
            texels = tuple(self.f.convert("bitcast", word, self.lanes.kind) for word in words)
        texels = texels[: memory.channels]
        if self._stores_apart(statement.at, memory, texels):
            return
        for channel, each in enumerate(texels):
            place = self.lanes.add(self.lanes.times(at, memory.scale), Affine(None, memory.step * channel))
            self._store_values(statement.target, memory.pointer, place, (each,))

    def _stores_apart(self, at: Operand, memory: PlaneMemory, texels: Texels) -> bool:
        """Store lanes one by one where they are apart, and all are stored; False elsewhere."""
        if self.mask is not None or memory.scale != 1:
            return False
        shared, pixels = self._shared_and_own(at)
        if isinstance(pixels, Affine) and pixels.step <= EVEN_STEP:
            return False
        for channel, each in enumerate(texels):
            store_apart(self.lanes, Spread(memory.pointer, _moved(shared, memory.step * channel), pixels), each)
        return True

    def _shared_and_own(self, at: Operand) -> tuple[Affine, IntValue]:
        """The place of a texel: what all lanes share, and what each adds to it."""
        if not isinstance(at, Texel):
            return Affine(None, 0), self._int(at)
        shared = self.lanes.times(self._int(at.at), at.pixels)
        assert isinstance(shared, Affine)
        return shared, self._int(at.pixel)

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
                self.lanes.scatter(self.context.memories[target].pointer, at, value, self.mask)
        self._strided.clear()

    # Vectors ----------------------------------------------------------------------------------------------------------

    def texels(self, value: Operand) -> Texels:
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
        self._values[name] = self.texels(self._declared[name])
        return self._name(value)

    def _operation(self, value: Operation) -> Texels:
        if value.type == "float":
            return (self._float(value),) * self._together
        operands = value.operands
        if value.operation == "add":
            for term, product in (operands, operands[::-1]):
                if isinstance(product, Operation) and product.operation == "multiply" and product.type == "vec4":
                    return self._multiply_add(*product.operands, term)
        parts = [self.texels(each) for each in operands]
        return tuple(self._arithmetic(value.operation, *each) for each in zip(*parts, strict=True))

    def _multiply_add(self, *operands: Operand) -> Texels:
        parts = zip(*map(self.texels, operands), strict=True)
        return tuple(self.f.fma(*map(self.lanes.floats, each)) for each in parts)

    def _elementwise(self, value: Elementwise) -> Texels:
        operands = [self.texels(each) for each in value.operands]
        if isinstance(value.arithmetic, Operation) and value.arithmetic.operation == "add steps":
            return self._added_steps(value, operands)
        found: dict[tuple[str, ...], Register] = {}
        results = []
        for each in zip(*operands, strict=True):
            parts = [self.lanes.floats(part) for part in each]
            key = tuple(part.text for part in parts)
            if key not in found:
                found[key] = elementwise_vectors(self.f, value, parts, self._own_numbers(value))
            results.append(found[key])
        return tuple(results)

    def _requantized(self, value: Requantized) -> Texels:
        parts = (self.texels(each) for each in (value.value, value.multiplier, value.half, value.shift))
        is_positive = value.limits[0] >= 0
        found = []
        for each, *numbers in zip(*parts, strict=True):
            multiplier, half, shift = map(self.lanes.bits, numbers)
            whole = self.lanes.wholes(each)
            found.append(self._bytes.requantized(whole, multiplier, half, shift, value.may_not_shift, is_positive))
        return self._limited(found, value.limits)

    def _limited(self, values: Sequence[Register], limits: tuple[int, int]) -> Texels:
        """Whole numbers between limits, of which later code knows that they are."""
        low, high = (self._own_int(("limit", k, limit), limit) for k, limit in enumerate(limits))
        byte_low = self.context.lows.get(limits[0]) if limits[1] - limits[0] == BYTE_VALUES - 1 else None
        return tuple(Limited(value, (low, high), byte_low) for value in values)

    def _added_steps(self, value: Elementwise, operands: Sequence[Texels]) -> Texels:
        """ADD_STEPS on ints, in the order in which its arithmetic has them."""
        assert isinstance(value.arithmetic, Operation)
        order = [each.number for each in value.arithmetic.operands if isinstance(each, Argument)]
        left, right, *_ = (operands[number] for number in order if number < len(operands))

        def own(number: int) -> Register:
            return self._own_int(("add steps", value.numbers, number), number)

        pairs = zip(map(self.lanes.wholes, left), map(self.lanes.wholes, right), strict=True)
        summed = [self._bytes.added(first, second, value.numbers, own) for first, second in pairs]
        return self._limited(summed, numbers_of_sum(value.numbers)[-1])

    def _own_int(self, key: object, value: int) -> Register:
        """An int that a kernel of the same text may have another of."""
        return self.lanes.once(("own int", key), lambda: self.context.own_int(self.f, key, value))

    def _own_numbers(self, value: Elementwise) -> OwnNumbers:
        """The numbers of an op among the weights, by the order in which its code asks for them."""
        order = count()

        def load(number: float, kind: str) -> Register:
            key = (value.arithmetic, value.numbers, next(order))
            place = self.context.tables.own_place(key, number, kind)
            return self.lanes.once(("own", key), lambda: self.f.load(kind, self.f.at(self.context.weights, place)))

        return load

    def _keep(self, value: Keep) -> Texels:
        texels, other = self.texels(value.value), 0.0 if value.other is None else value.other
        first = self.lanes.times(self._int(value.at), 4)
        kept = []
        for lane, each in enumerate(texels):
            channel = Affine(None, lane) if self.context.channel is None else Affine(self.context.channel, 0)
            holds = self._below(self.lanes.add(first, channel), value.channels)
            kept.append(self.lanes.select(holds, each, other))
        return tuple(kept)

    def _tap(self, value: Tap) -> Texels:
        """Where a window lies outside of its map, what stands in memory there is read and not used."""
        condition = self._condition(value.valid)
        if condition is False:
            return self.texels(value.outside)
        inside = value.value
        if condition is True:
            return self.texels(inside)
        where = self._where(value.valid)
        if isinstance(inside, LoadFrom) and where is not None and where.ndim:
            texels = self.lanes.load(self.context.memories[inside.source], self._int(inside.at, where), self._together)
        else:
            texels = self.texels(inside)
        mask, outside_texels = self.lanes.mask(condition), self.texels(value.outside)
        first = word_of(texels)
        if first and value.outside == ZEROS:
            other = self._bytes.word(outside_texels, first.low)
            word = self.f.choose(mask, first.word, other)
            return tuple(ByteLane(word, lane, first.low) for lane in range(len(texels)))
        outside = zip(texels, outside_texels, strict=True)
        return tuple(self.lanes.select(mask, each, other) for each, other in outside)

    def _choose(self, value: Choose) -> Texels:
        condition = self._condition(value.condition)
        if isinstance(condition, bool):
            return self.texels(value.value if condition else value.other)
        parts = zip(self.texels(value.value), self.texels(value.other), strict=True)
        return tuple(self.lanes.select(condition, *each) for each in parts)

    def _choose_lanes(self, value: ChooseLanes) -> Texels:
        compared = zip(self.texels(value.left), self.texels(value.right), strict=True)
        pairs = ((self.lanes.floats(left), self.lanes.floats(right)) for left, right in compared)
        holds = [self.lanes.math.compare(FLOAT_CONDITIONS[value.comparison], *pair) for pair in pairs]
        parts = zip(holds, self.texels(value.value), self.texels(value.other), strict=True)
        return tuple(self.lanes.select(*each) for each in parts)

    def _load(self, value: LoadFrom) -> Texels:
        return self.lanes.load(self.context.memories[value.source], self._int(value.at), self._together)

    def _quad_sum(self, value: QuadSum) -> Texels:
        def places(index: Register) -> tuple[Register, Register]:
            self._ints[SLICE.name] = Affine(index, 0)
            panel = self.lanes.place(self.context.memories[PANEL], self._int(value.panel))
            return panel, self.lanes.place(self._weights, self._int(value.weights))

        with self.lanes.block(), self._own_values():
            return quad_sum(self.f, value, places)

    def _run_pixel(self, value: RunPixel) -> Texels:
        memory = self.context.memories[value.first.source]
        shared, pixels = self._shared_and_own(value.first.at)
        if isinstance(pixels, Affine) and pixels.step <= EVEN_STEP:
            place = self.lanes.add(shared, _moved(pixels, value.number))
            return self.lanes.load(memory, place, self._together)
        runs = (
            Spread(memory.pointer, _moved(shared, memory.step * channel), pixels) for channel in range(self._together)
        )
        return tuple(pixel_of_run(self.lanes, run, value.number, value.count) for run in runs)

    def _weight(self, value: Weight) -> Texels:
        return self.lanes.load(self._weights, self._int(value.at), self._together)


def by_channels(statements: Iterable[Statement]) -> bool:
    """Whether each channel of a slice is computed from the same channel of others."""
    return not any(type(value) in _ACROSS for each in statements for value in values_in(each))


def _terms(value: Operand) -> Iterator[Operand]:
    """What is added, from the first to the last."""
    if isinstance(value, Operation) and value.operation == "add":
        yield from _terms(value.operands[0])
        yield value.operands[1]
    else:
        yield value


def _moved(place: Affine, floats: int) -> Affine:
    return place._replace(constant=place.constant + floats)


def _form(value: Operand) -> type:
    """Of sums of products: bytes, pairs, or floats."""
    return type(value) if isinstance(value, ByteProducts | PairProducts) else Operation


def _weight_of(term: Operand) -> Operand | None:
    return term.operands[1] if isinstance(term, Operation) and term.operation == "multiply" else None


def _byte_sums(statements: Iterable[Statement]) -> Iterator[str]:
    """Names of sums of products of bytes."""
    for statement in statements:
        if isinstance(statement, AddTo) and isinstance(statement.value, ByteProducts):
            yield statement.name.name
        for block in blocks_in(statement):
            yield from _byte_sums(block)


def _changed(statements: Iterable[Statement]) -> Iterator[str]:
    """Names of variables that get other values."""
    for statement in statements:
        if isinstance(statement, AddTo | Assign):
            yield statement.name.name
        for block in blocks_in(statement):
            yield from _changed(block)


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
        Repeated: lambda printer, value: (printer.texels(value.value)[0],) * 4,
        Elementwise: LanePrinter._elementwise,
        Bits: lambda printer, value: tuple(printer.lanes.bits(each) for each in printer.texels(value.value)),
        Requantized: LanePrinter._requantized,
        Keep: LanePrinter._keep,
        Choose: LanePrinter._choose,
        ChooseLanes: LanePrinter._choose_lanes,
        Tap: LanePrinter._tap,
        LoadFrom: LanePrinter._load,
        Weight: LanePrinter._weight,
        QuadSum: LanePrinter._quad_sum,
        RunPixel: LanePrinter._run_pixel,
    }
)

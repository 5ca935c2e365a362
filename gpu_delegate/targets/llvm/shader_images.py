"""Pictures in memory as shaders' code reads and writes them: textures, tensors as texels, and what is drawn into.

Pixels are read for a vector of places at once. Mostly those lie close together in one row, in any order: then a piece
of that row is loaded and permuted, else they are gathered. Places outside a picture are those at its edge.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from . import ir
from .ir import FLOAT, I8, I32, I64, Register, integer, lanes_of, vector
from .machine import CpuTarget
from .shader_parts import Component, Parts, is_uniform

SampleType = Literal["u8", "u16", "f32"]
ShaderColor = Sequence[Component]  # red, green, blue, alpha
_BITS = {"u8": 8, "u16": 16}


@dataclass(frozen=True)
class ImageForm:
    """How pixels lie: samples of a type; those of one pixel side by side, or in planes one behind the other.

    With `is_row` all pixels are one row, of as many as the width says: texels of a buffer.
    """

    sample: SampleType
    channels: int
    in_planes: bool = False
    is_row: bool = False

    @property
    def sample_bytes(self) -> int:
        return {"u8": 1, "u16": 2, "f32": 4}[self.sample]

    @property
    def element_bytes(self) -> int:
        """From one pixel of a row to the next, within a plane."""
        return self.sample_bytes * (1 if self.in_planes else self.channels)


@dataclass(frozen=True)
class BoundImage:
    """A picture's registers: where it begins, bytes from row to row and from plane to plane, and its size."""

    form: ImageForm
    start: Register
    row_bytes: Register
    plane_bytes: Register
    width: Register
    height: Register


class ImageCode:
    """Writes what reads and writes pictures."""

    def __init__(self, parts: Parts, target: CpuTarget) -> None:
        self.p, self.f, self.lanes = parts, parts.f, parts.lanes
        self._permutes = target.is_x86 and self.lanes in (8, 16)

    # Reading ----------------------------------------------------------------------------------------------------------

    def fetch(self, image: BoundImage, x: Component, y: Component, wanted: Iterable[int]) -> dict[int, Component]:
        """Some channels of pixels as floats; channels that an image lacks are 0, alpha 1."""
        channels = [channel for channel in wanted if channel < image.form.channels]
        x = self._inside(x, image.width)
        y = 0 if image.form.is_row else self._inside(y, image.height)
        if is_uniform(x) and is_uniform(y):
            found = self._of_one_place(image, x, y, channels)
        elif is_uniform(y):
            found = self._of_row(image, x, y, channels)
        else:
            found = self._gathered(image, self._offsets(image, x, y), channels)
        return {channel: found.get(channel, 1.0 if channel == 3 else 0.0) for channel in wanted}

    def _inside(self, place: Component, size: Register) -> Component:
        last = self.p.binary("-", "int", size, 1)
        return self.p.clamped("int", place, 0, last)

    def _row(self, image: BoundImage, y: Component) -> Register:
        if not isinstance(y, Register) and y == 0:
            return image.start
        place = self.f.convert("sext", self.p.register(y, "int", 1), I64)
        return self.f.at(image.start, self.f.binary("mul", place, image.row_bytes), I8)

    def _of_one_place(
        self, image: BoundImage, x: Component, y: Component, channels: Sequence[int]
    ) -> dict[int, Component]:
        form, f = image.form, self.f
        pixel = f.at(self._row(image, y), self._times(self.p.register(x, "int", 1), form.element_bytes), I8)
        found = dict[int, Component]()
        for channel in channels:
            address = self._channel(image, pixel, channel)
            if form.sample == "f32":
                found[channel] = f.load(FLOAT, address)
            else:
                code = f.load(f"i{_BITS[form.sample]}", address, form.sample_bytes)
                found[channel] = self._scaled(f.convert("zext", code, I32), form)
        return found

    def _times(self, place: Register, by: int) -> Register:
        wide = self.f.convert("sext", place, vector(I64, lanes_of(place.type)))
        return self.f.binary("mul", wide, ir.filled(integer(by, I64), lanes_of(place.type)))

    def _channel(self, image: BoundImage, pixel: Register, channel: int) -> Register:
        """The address of a channel, from that of the pixel."""
        if not channel:
            return pixel
        if image.form.in_planes:
            return self.f.at(pixel, self.f.binary("mul", image.plane_bytes, integer(channel, I64)), I8)
        return self.f.at(pixel, channel * image.form.sample_bytes, I8)

    def _scaled(self, codes: Register, form: ImageForm) -> Component:
        """Codes as floats from 0 to 1."""
        value = self.p.converted(codes, "int", "float")
        return self.p.binary("*", "float", value, 1.0 / ((1 << _BITS[form.sample]) - 1))

    def _of_row(self, image: BoundImage, x: Component, y: Component, channels: Sequence[int]) -> dict[int, Component]:
        """By a piece of the row where that holds all places."""
        f, form = self.f, image.form
        places = self.p.vector(x, "int")
        row = self._row(image, y)
        together = form.sample == "f32" and not form.in_planes and form.channels > 1
        if together and (form.channels != 4 or not self._permutes):
            return self._gathered(image, self._times(places, form.element_bytes), channels, row)
        reach = self.lanes // 2 if together else self.lanes  # pixels of a piece: of two vectors, or of one
        ends = f.lane(places, 0), f.lane(places, self.lanes - 1)
        first = self.p.smaller("int", *ends)
        first = self.p.smaller("int", first, self.p.binary("-", "int", image.width, reach))
        first = self.p.register(self.p.larger("int", 0, first), "int", 1)
        apart = f.binary("sub", places, f.splat(first, self.lanes))
        if self._permutes:
            close = f.compare("icmp ult", apart, ir.filled(integer(reach), self.lanes))
        else:
            close = f.compare("icmp eq", apart, ir.constants([integer(lane) for lane in range(self.lanes)]))
        kept = self._reserved(form, channels)
        with f.either(self.p.all(close)) as otherwise:
            piece = self._paired if together else self._windowed
            self._keep(kept, piece(image, row, first, apart, channels))
            otherwise.begin()
            self._keep(kept, self._raw_gathered(image, self._times(places, form.element_bytes), channels, row))
        return self._told(
            form, {key: f.load(vector(kind, self.lanes), at) for key, (kind, at) in kept.items()}, channels
        )

    def _reserved(self, form: ImageForm, channels: Sequence[int]) -> dict[int, tuple[str, Register]]:
        """Variables of what is loaded: of floats a vector for each channel, of codes one for whole pixels."""
        kind, keys = (FLOAT, channels) if form.sample == "f32" else (I32, channels[:1])
        return {key: (kind, self.f.reserve(vector(kind, self.lanes))) for key in keys}

    def _keep(self, kept: dict[int, tuple[str, Register]], values: Sequence[Register]) -> None:
        for (_, at), value in zip(kept.values(), values, strict=True):
            self.f.store(value, at, 64)

    def _told(self, form: ImageForm, raw: dict[int, Register], channels: Sequence[int]) -> dict[int, Component]:
        """What raw vectors tell of channels."""
        if form.sample == "f32":
            return dict(raw)
        found, bits = dict[int, Component](), _BITS[form.sample]
        for channel in channels:
            codes: Register = next(iter(raw.values()))
            if form.channels > 1:
                if channel:
                    codes = self.f.binary("lshr", codes, ir.filled(integer(bits * channel), self.lanes))
                if channel < form.channels - 1 or form.channels * bits < 32:
                    codes = self.f.binary("and", codes, ir.filled(integer((1 << bits) - 1), self.lanes))
            found[channel] = self._scaled(codes, form)
        return found

    def _windowed(
        self, image: BoundImage, row: Register, first: Register, apart: Register, channels: Sequence[int]
    ) -> list[Register]:
        f, form = self.f, image.form
        start = f.at(row, self._times(first, form.element_bytes), I8)
        if form.sample == "f32":
            loaded = [
                f.load(vector(FLOAT, self.lanes), self._channel(image, start, channel), 4) for channel in channels
            ]
        else:
            pieces = f.load(vector(f"i{8 * form.element_bytes}", self.lanes), start, form.sample_bytes)
            loaded = [pieces if form.element_bytes == 4 else f.convert("zext", pieces, vector(I32, self.lanes))]
        return [self._permuted(each, apart) for each in loaded] if self._permutes else loaded

    def _paired(
        self, image: BoundImage, row: Register, first: Register, apart: Register, channels: Sequence[int]
    ) -> list[Register]:
        """Of pixels of four floats, which lie in two vectors."""
        f, kind = self.f, vector(FLOAT, self.lanes)
        start = f.at(row, self._times(first, image.form.element_bytes), I8)
        low, high = (f.load(kind, f.at(start, part * self.lanes), 4) for part in range(2))
        places, found = f.binary("shl", apart, ir.filled(integer(2), self.lanes)), []
        for channel in channels:
            order = f.binary("or", places, ir.filled(integer(channel), self.lanes))
            in_low = f.compare("icmp ult", order, ir.filled(integer(self.lanes), self.lanes))
            found.append(f.choose(in_low, self._permuted(low, order), self._permuted(high, order)))
        return found

    def _permuted(self, values: Register, order: Register) -> Register:
        """Lanes of a vector in an order, of whose numbers the lowest bits count."""
        kind = vector(I32, self.lanes)
        codes = values if values.type == kind else self.f.convert("bitcast", values, kind)
        name = "llvm.x86.avx512.permvar.si.512" if self.lanes == 16 else "llvm.x86.avx2.permd"
        found = self.f.call(name, kind, codes, order)
        return found if values.type == kind else self.f.convert("bitcast", found, values.type)

    def _offsets(self, image: BoundImage, x: Component, y: Component) -> Register:
        """Of pixels from a picture's beginning, in bytes."""
        columns = self._times(self.p.vector(x, "int"), image.form.element_bytes)
        rows = self.f.convert("sext", self.p.vector(y, "int"), vector(I64, self.lanes))
        above = self.f.binary("mul", rows, self.f.splat(image.row_bytes, self.lanes))
        return self.f.binary("add", above, columns)

    def _gathered(
        self, image: BoundImage, offsets: Register, channels: Sequence[int], start: Register | None = None
    ) -> dict[int, Component]:
        raw = self._raw_gathered(image, offsets, channels, start or image.start)
        return self._told(image.form, dict(zip(channels, raw, strict=False)), channels)

    def _raw_gathered(
        self, image: BoundImage, offsets: Register, channels: Sequence[int], start: Register
    ) -> list[Register]:
        """Of floats a vector for each channel, of codes one with all samples of a pixel."""
        f, form = self.f, image.form
        pixels = f.give(f"getelementptr i8, ptr {start.text}, {offsets.operand}", vector("ptr", self.lanes))
        if form.sample != "f32":
            bits = 8 * form.element_bytes
            codes = self._gather(pixels, f"i{bits}", form.sample_bytes)
            return [codes if bits == 32 else f.convert("zext", codes, vector(I32, self.lanes))]
        found = []
        for channel in channels:
            at = pixels
            if channel:
                further = image.plane_bytes if form.in_planes else integer(form.sample_bytes, I64)
                by = f.splat(f.binary("mul", further, integer(channel, I64)), self.lanes)
                at = f.give(f"getelementptr i8, {pixels.operand}, {by.operand}", pixels.type)
            found.append(self._gather(at, FLOAT, 4))
        return found

    def _gather(self, pointers: Register, element: str, align_bytes: int) -> Register:
        kind = vector(element, self.lanes)
        active = ir.filled(integer(-1, ir.I1), self.lanes)
        name = f"llvm.masked.gather.{ir.suffix(kind)}.v{self.lanes}p0"
        return self.f.call(name, kind, pointers, integer(align_bytes), active, Register("poison", kind))

    # Writing ----------------------------------------------------------------------------------------------------------

    def lay_over(self, image: BoundImage, block: Register, first: Register, y: Register, values: ShaderColor) -> None:
        """Premultiplied colors over what is there, from a column on; what lies ahead of that is left as it is.

        The vector begins with `first`, which is not behind that column, so that it ends within the row.
        """
        before = self._loaded(image, first, y)
        places = self.p.binary("+", "int", first, ir.constants([integer(lane) for lane in range(self.lanes)]))
        inside = self.p.binary(
            "&&", "bool", self.p.compare("<=", "int", block, places), self.p.compare("<", "int", places, image.width)
        )
        rest = self.p.binary("-", "float", 1.0, values[3])
        laid = [self.p.fused(rest, under, value) for under, value in zip(before, values, strict=True)]
        pairs = zip(laid, before, strict=True)
        self.store(image, first, y, [self.p.chosen(inside, "float", *pair) for pair in pairs])

    def _loaded(self, image: BoundImage, first: Register, y: Register) -> list[Component]:
        """All four channels of a vector of pixels from a column on."""
        f, form, channels = self.f, image.form, range(4)
        start = f.at(self._row(image, y), self._times(first, form.element_bytes), I8)
        if form.sample == "f32":
            kind = vector(FLOAT, self.lanes)
            return [f.load(kind, self._channel(image, start, channel), 4) for channel in channels]
        found = self._told(form, {0: f.load(vector(I32, self.lanes), start, 1)}, channels)
        return [found[channel] for channel in channels]

    def store(self, image: BoundImage, first: Register, y: Register, values: Sequence[Component]) -> None:
        """A vector of pixels from a column on, in one row; floats become codes where the picture has those."""
        f, form = self.f, image.form
        start = f.at(self._row(image, y), self._times(first, form.element_bytes), I8)
        if form.sample == "f32":
            for channel, value in enumerate(values[: form.channels]):
                f.store(self.p.vector(value, "float"), self._channel(image, start, channel))
            return
        assert form.sample == "u8", "pictures of 16 bits are only read"
        codes = [self._code(value) for value in values[: form.channels]]
        if form.in_planes:
            for channel, code in enumerate(codes):
                byte = f.convert("trunc", code, vector(I8, self.lanes))
                f.store(byte, self._channel(image, start, channel), 1)
            return
        whole: Register | None = None
        for channel, code in enumerate(codes):
            shifted = f.binary("shl", code, ir.filled(integer(8 * channel), self.lanes)) if channel else code
            whole = shifted if whole is None else f.binary("or", whole, shifted)
        assert whole is not None
        kind = vector(f"i{8 * form.channels}", self.lanes)
        f.store(whole if form.channels == 4 else f.convert("trunc", whole, kind), start, 1)

    def _code(self, value: Component) -> Register:
        """0 to 255, rounded to the nearest; 0 for what is no number."""
        limited = self.p.vector(self.p.clamped("float", value, 0.0, 1.0), "float")
        scaled = self.p.register(self.p.binary("*", "float", limited, 255.0), "float", self.lanes)
        whole = self.f.call(f"llvm.rint.{ir.suffix(scaled.type)}", scaled.type, scaled)
        return self.f.convert("fptosi", whole, vector(I32, self.lanes))

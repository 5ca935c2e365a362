"""Chooses how a kernel accesses its tensors (buffer textures or blocks), and writes their GLSL declarations.

Binding points of storage blocks belong to outputs, then inputs, then weights; those of uniform blocks to weights, then
inputs; each kind counts only what is read in its way. Texture units are WEIGHTS_UNIT, then one for each input.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from ...device.limits import Limits
from ...model.layout import PHWC4, TEXEL_BYTES, Fetch, Storage, ceil_div
from ...model.packing import Blob
from .shader import lines_of

WEIGHTS_UNIT = 0  # texture unit of the weights
FIRST_INPUT_UNIT = 1

_OTHERWISE: Mapping[Fetch, tuple[Fetch, ...]] = MappingProxyType(  # where a device cannot have what is wanted
    {
        "texture": ("texture", "storage", "uniform"),
        "uniform": ("uniform", "storage", "texture"),
        "storage": ("storage", "uniform", "texture"),
    }
)

_PACKED: Mapping[int, str] = MappingProxyType({1: "uint", 2: "uvec2"})  # types of texels in GLSL, by bytes of a value


@dataclass(frozen=True)
class KernelInput:
    """What a kernel reads, a tensor or its weights: so many texels."""

    storage: Storage
    texels: int
    fetch: Fetch = "texture"
    is_replaced: bool = False  # an output lies where it does
    low: str = ""  # the variable that holds the least number of its bytes; "" writes the number itself

    @property
    def unpacks(self) -> bool:
        """Whether the GLSL has to unpack halves or bytes; buffer textures take them apart themselves."""
        return self.fetch == "storage" and self.storage.is_packed

    def ways(self, limits: Limits) -> tuple[Fetch, ...]:
        """How a device can read it. The elements of arrays in uniform blocks are whole vec4s (std140)."""
        found: list[Fetch] = ["storage"]
        if self.texels <= limits.texture_buffer_texels:
            found.append("texture")
        if self.storage == PHWC4 and 0 < self.texels * TEXEL_BYTES <= limits.uniform_block_bytes:
            found.append("uniform")
        return tuple(found)


@dataclass(frozen=True)
class KernelOutput:
    """A tensor that a kernel writes."""

    storage: Storage
    lanes: int = 4  # written by one WRITE; a plain tensor may be written in pairs or fours
    replaces: bool = False  # it lies where an input does
    low: str = ""  # as an input's

    @property
    def texel(self) -> str:
        """The GLSL type of what one WRITE stores in memory."""
        return _PACKED.get(self.storage.value_bytes) or ("float" if self.lanes == 1 else f"vec{self.lanes}")


@dataclass(frozen=True)
class HalfFunctions:
    """How kernels convert what is stored as halves."""

    packs: bool = False  # by packHalf2x16
    arithmetic: bool = False  # halves are multiplied as halves

    @property
    def pack(self) -> str:
        return "pack_halves" if self.packs else "to_halves"

    @property
    def unpack(self) -> str:
        return "half_texel" if self.arithmetic else "from_halves"

    def lines(self) -> list[str]:
        """The functions in GLSL."""
        own = ["halves_packed.glsl"] * self.packs + ["half_arithmetic.glsl"] * self.arithmetic
        return [line for name in ("halves.glsl", *own) for line in lines_of(name)]


@dataclass(frozen=True)
class Bindings:
    """All that a kernel reads and writes; `restricts` is that of `declare`."""

    inputs: tuple[KernelInput, ...]
    outputs: tuple[KernelOutput, ...]
    weights: KernelInput | None
    restricts: bool
    halves: HalfFunctions

    @property
    def lines(self) -> list[str]:
        """The declarations in GLSL."""
        return declare(self.inputs, self.outputs, self.weights, self.restricts, self.halves)

    def with_replaced(self, read: int, written: int) -> "Bindings":
        """The same where an output, by its number, lies where an input does, which is read as storage then."""
        inputs, outputs = list(self.inputs), list(self.outputs)
        inputs[read] = replace(inputs[read], fetch="storage", is_replaced=True)
        outputs[written] = replace(outputs[written], replaces=True)
        return replace(self, inputs=tuple(inputs), outputs=tuple(outputs))


def settle_fetches(wanted: Sequence[KernelInput], outputs: int, limits: Limits) -> list[KernelInput]:
    """Each as its `fetch` says, or else as sizes and numbers of blocks allow; the first have the first choice.

    Storage blocks are kept for those that can be read in no other way.
    """
    possible = [each.ways(limits) for each in wanted]
    room: dict[Fetch, int] = {
        "texture": limits.compute_textures,
        "uniform": limits.uniform_blocks,
        "storage": limits.storage_bindings - outputs - sum(ways == ("storage",) for ways in possible),
    }
    settled = list[KernelInput]()
    for each, ways in zip(wanted, possible, strict=True):
        fetch: Fetch = next((way for way in _OTHERWISE[each.fetch] if way in ways and room[way] > 0), "storage")
        if len(ways) > 1:
            room[fetch] -= 1
        settled.append(replace(each, fetch=fetch))
    return settled


def declare(
    sources: Sequence[KernelInput],
    targets: Sequence[KernelOutput],
    weights: KernelInput | None = None,
    restricts: bool = False,
    halves: HalfFunctions = HalfFunctions(),
) -> list[str]:
    """Declarations of all that a kernel reads and writes.

    With `restricts`, compilers are told that what is written is read in no other way, so that they may move reads over
    writes: memory is planned so, but for what an output replaces. Textures are never taken to be what is written, so
    kernels that read those alone do without.
    """
    read = [*sources, *([weights] if weights else [])]
    packed = [each.storage for each in read if each.unpacks] + [each.storage for each in targets]
    has_halves = halves.arithmetic or any(storage.is_halves for storage in packed)
    has_bytes = any(storage.is_bytes for storage in packed)
    restrict = "restrict " if restricts else ""
    storage, uniform = len(targets), 0
    lines = []
    if weights and weights.fetch == "texture":
        lines.append(f"layout(binding = {WEIGHTS_UNIT}) uniform samplerBuffer weights;")
    elif weights and weights.fetch == "uniform":
        lines += _weights_array(f"layout(std140, binding = 0) uniform Weights {{ vec4 weights[{weights.texels}]; }};")
        uniform += 1
    if has_halves:
        lines += halves.lines()
    if has_bytes:
        lines += lines_of("stored_bytes.glsl")
    for k, source in enumerate(sources):
        if source.fetch == "texture":
            lines += _input_texture(k, source)
        elif source.fetch == "uniform":
            lines += _input_array(k, f"std140, binding = {uniform}", "uniform", source, halves.unpack)
            uniform += 1
        else:
            kind = "buffer" if source.is_replaced else f"readonly {restrict}buffer"
            lines += _input_array(k, f"std430, binding = {storage}", kind, source, halves.unpack)
            storage += 1
    if weights and weights.fetch == "storage":
        texel = "uvec2" if weights.unpacks else "vec4"
        block = f"layout(std430, binding = {storage}) readonly {restrict}buffer Weights {{ {texel} weights[]; }};"
        lines += _weights_array(block, f"{halves.unpack}(weights[i])" if weights.unpacks else "weights[i]")
    for k, target in enumerate(targets):
        alone = "" if target.replaces else restrict
        converts = has_halves or has_bytes
        lines += _converted_output(k, target, alone, halves.pack) if converts else _output(k, target, alone)
    return lines


def _weights_array(block: str, value: str = "weights[i]") -> list[str]:
    return [block, "#undef WEIGHT", f"#define WEIGHT(i) {value}"]


def _input_texture(k: int, source: KernelInput) -> list[str]:
    kind, value = "samplerBuffer", f"texelFetch(in{k}_texels, i)"
    if source.storage.is_bytes:  # OpenGL ES has no precision of its own for such samplers
        kind, value = "highp usamplerBuffer", _with_low(f"vec4({value})", source)
    return [f"layout(binding = {FIRST_INPUT_UNIT + k}) uniform {kind} in{k}_texels;", f"#define in{k}(i) {value}"]


def _input_array(k: int, layout: str, kind: str, source: KernelInput, unpack: str) -> list[str]:
    texel, value = "vec4", f"in{k}_texels[i]"
    if source.unpacks:
        texel, storage = _PACKED[source.storage.value_bytes], source.storage
        value = _with_low(f"from_bytes({value})", source) if storage.is_bytes else f"{unpack}({value})"
    size = source.texels if source.fetch == "uniform" else ""
    return [f"layout({layout}) {kind} In{k} {{ {texel} in{k}_texels[{size}]; }};", f"#define in{k}(i) {value}"]


def _output(k: int, target: KernelOutput, restrict: str) -> list[str]:
    return [f"layout(std430, binding = {k}) writeonly {restrict}buffer Out{k} {{ {target.texel} out{k}[]; }};"]


def _converted_output(k: int, target: KernelOutput, restrict: str, to_halves: str) -> list[str]:
    """In the form that WRITE in halves.glsl and stored_bytes.glsl expects, whatever this output is stored as."""
    storage, value = target.storage, "v"
    if storage.is_packed:
        value = f"to_bytes(v, {target.low or f'{storage.low}.0'})" if storage.is_bytes else f"{to_halves}(v)"
    return [
        f"layout(std430, binding = {k}) writeonly {restrict}buffer Out{k} {{ {target.texel} out{k}_texels[]; }};",
        f"#define out{k}(i, v) out{k}_texels[i] = {value}",
    ]


def with_lows(
    sources: Sequence[KernelInput], targets: Sequence[KernelOutput], blob: Blob
) -> tuple[list[KernelInput], list[KernelOutput], list[str]]:
    """The same where the least numbers of bytes are among the weights, and the lines that read them.

    Kernels that differ in them alone have the same source.
    """
    storages = [*(each.storage for each in sources), *(each.storage for each in targets)]
    values = [storage.low for storage in storages if storage.low]
    base = blob.vector(np.array(values, np.float32)) if values else 0
    names = (f"lows{k // 4}.{'xyzw'[k % 4]}" for k in range(len(values)))
    read = [replace(each, low=next(names)) if each.storage.low else each for each in sources]
    written = [replace(each, low=next(names)) if each.storage.low else each for each in targets]
    return read, written, [f"    vec4 lows{k} = WEIGHT({base + k});" for k in range(ceil_div(len(values), 4))]


def _with_low(unsigned: str, source: KernelInput) -> str:
    """The numbers that the bytes of a texel stand for."""
    low = source.storage.low
    if source.low:
        return f"({unsigned} + {source.low})"
    return f"({unsigned} {'-' if low < 0 else '+'} {abs(low)}.0)" if low else unsigned

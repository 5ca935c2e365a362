"""A kernel's tensors and how each is stored go in; the GLSL that stands behind its READ and WRITE comes out."""

from collections.abc import Sequence
from dataclasses import dataclass

from .layout import Storage
from .shader import lines_of

WEIGHTS_UNIT = 0  # texture unit of the weights
FIRST_INPUT_UNIT = 1


@dataclass(frozen=True)
class Source:
    """A tensor that a kernel reads."""

    storage: Storage
    through_storage: bool  # as SSBO, since it is too large for a buffer texture

    @property
    def unpacks(self) -> bool:
        """Whether the text has to; buffer textures convert halves themselves."""
        return self.through_storage and self.storage.is_halves


@dataclass(frozen=True)
class Target:
    """A tensor that a kernel writes."""

    storage: Storage
    lanes: int = 4  # of one WRITE; a plain tensor may be written in pairs or fours

    @property
    def texel(self) -> str:
        """The GLSL type in which memory holds what one WRITE writes."""
        return "uvec2" if self.storage.is_halves else "float" if self.lanes == 1 else f"vec{self.lanes}"


def declare(sources: Sequence[Source], targets: Sequence[Target]) -> list[str]:
    """Declarations: inputs as buffer textures from FIRST_INPUT_UNIT on, outputs and large inputs as SSBOs."""
    converts = any(target.storage.is_halves for target in targets) or any(source.unpacks for source in sources)
    lines = [f"layout(binding = {WEIGHTS_UNIT}) uniform samplerBuffer weights;"]
    if converts:
        lines += lines_of("halves.glsl")
    for k, source in enumerate(sources):
        lines += _input(k, source, binding=len(targets) + k)
    for k, target in enumerate(targets):
        lines += _converted_output(k, target) if converts else _output(k, target)
    return lines


def _input(k: int, source: Source, binding: int) -> list[str]:
    if not source.through_storage:
        return [
            f"layout(binding = {FIRST_INPUT_UNIT + k}) uniform samplerBuffer in{k}_texels;",
            f"#define in{k}(i) texelFetch(in{k}_texels, i)",
        ]
    texel, value = ("uvec2", f"from_halves(in{k}_texels[i])") if source.unpacks else ("vec4", f"in{k}_texels[i]")
    return [
        f"layout(std430, binding = {binding}) readonly buffer In{k} {{ {texel} in{k}_texels[]; }};",
        f"#define in{k}(i) {value}",
    ]


def _output(k: int, target: Target) -> list[str]:
    return [f"layout(std430, binding = {k}) writeonly buffer Out{k} {{ {target.texel} out{k}[]; }};"]


def _converted_output(k: int, target: Target) -> list[str]:
    """As WRITE of halves.glsl wants it, whether this output is stored as halves or not."""
    value = "to_halves(v)" if target.storage.is_halves else "v"
    return [
        f"layout(std430, binding = {k}) writeonly buffer Out{k} {{ {target.texel} out{k}_texels[]; }};",
        f"#define out{k}(i, v) out{k}_texels[i] = {value}",
    ]

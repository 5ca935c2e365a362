"""A kernel's tensors and how each is stored go in; the GLSL declarations behind its READ and WRITE come out."""

from collections.abc import Sequence
from dataclasses import dataclass

from .layout import Storage
from .shader import lines_of

WEIGHTS_UNIT = 0  # texture unit of the weights
FIRST_INPUT_UNIT = 1


@dataclass(frozen=True)
class KernelInput:
    """A tensor that a kernel reads."""

    storage: Storage
    through_storage: bool  # read as an SSBO because it is too large for a buffer texture

    @property
    def unpacks(self) -> bool:
        """Whether the GLSL has to unpack halves; buffer textures convert them themselves."""
        return self.through_storage and self.storage.is_halves


@dataclass(frozen=True)
class KernelOutput:
    """A tensor that a kernel writes."""

    storage: Storage
    lanes: int = 4  # written by one WRITE; a plain tensor may be written in pairs or fours

    @property
    def texel(self) -> str:
        """The GLSL type of what one WRITE stores in memory."""
        return "uvec2" if self.storage.is_halves else "float" if self.lanes == 1 else f"vec{self.lanes}"


def declare(sources: Sequence[KernelInput], targets: Sequence[KernelOutput]) -> list[str]:
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


def _input(k: int, source: KernelInput, binding: int) -> list[str]:
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


def _output(k: int, target: KernelOutput) -> list[str]:
    return [f"layout(std430, binding = {k}) writeonly buffer Out{k} {{ {target.texel} out{k}[]; }};"]


def _converted_output(k: int, target: KernelOutput) -> list[str]:
    """In the form that WRITE in halves.glsl expects, whether or not this output is stored as halves."""
    value = "to_halves(v)" if target.storage.is_halves else "v"
    return [
        f"layout(std430, binding = {k}) writeonly buffer Out{k} {{ {target.texel} out{k}_texels[]; }};",
        f"#define out{k}(i, v) out{k}_texels[i] = {value}",
    ]

"""A kernel in OpenGL's GLSL goes in; the same as SPIR-V for Vulkan comes out, with the kinds of its bindings."""

import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

BindingKind = Literal["texels", "uniform", "storage"]
SETS: Mapping[BindingKind, int] = MappingProxyType({"storage": 0, "texels": 1, "uniform": 2})

_LAYOUT = re.compile(r"layout\(((?:std\d+, *)?)binding *= *(\d+)\)(.*)")


@dataclass(frozen=True)
class Module:
    """A shader for Vulkan: numbers of OpenGL's kinds of bindings overlap, so that each kind has a set of its own."""

    code: bytes
    bindings: tuple[tuple[BindingKind, int], ...]


def to_vulkan(source: str) -> tuple[str, tuple[tuple[BindingKind, int], ...]]:
    """The text with a set for each binding, and the bindings."""
    bindings: list[tuple[BindingKind, int]] = []

    def placed(found: re.Match[str]) -> str:
        kind = _kind(found[3])
        bindings.append((kind, int(found[2])))
        return f"layout({found[1]}set = {SETS[kind]}, binding = {found[2]}){found[3]}"

    text = re.sub(r"^#line.*\n", "", source, flags=re.M)
    return _LAYOUT.sub(placed, text), tuple(dict.fromkeys(bindings))


def compile_spirv(source: str, validator: str = "glslangValidator") -> Module:
    """Compile for Vulkan 1.1. Raises ValueError with glslang's errors, OSError without glslang."""
    text, bindings = to_vulkan(source)
    with tempfile.TemporaryDirectory() as folder:
        read, out = Path(folder, "shader.comp"), Path(folder, "shader.spv")
        read.write_text(text)
        command = [validator, "--target-env", "vulkan1.1", str(read), "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ValueError(done.stdout.strip())
        return Module(out.read_bytes(), bindings)


def _kind(declared: str) -> BindingKind:
    if "samplerBuffer" in declared:
        return "texels"
    return "storage" if re.search(r"\bbuffer\b", declared) else "uniform"

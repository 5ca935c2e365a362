"""Checks shaders with the reference compiler, and compiles kernels to SPIR-V for Vulkan."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from texelflow.gpu_delegate.targets.glsl.glsl_kernel import Kernel
from texelflow.gpu_delegate.targets.glsl.shader import for_es

VALIDATOR = "glslangValidator"
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
    text = text.replace("#version 430", "#version 450", 1)  # for which glslang has functions of halves
    return _LAYOUT.sub(placed, text), tuple(dict.fromkeys(bindings))


def validate(sources: Iterable[tuple[str, str]], folder: Path) -> list[str]:
    """Complaints of the reference compiler about (ending, source) pairs, all given at once."""
    texts = sorted(set(sources))
    files = [folder / f"{number}.{ending}" for number, (ending, _) in enumerate(texts)]
    for file, (_, source) in zip(files, texts, strict=True):
        file.write_text(source, encoding="utf-8")
    done = subprocess.run([VALIDATOR, *map(str, files)], capture_output=True, text=True, timeout=300, check=False)
    complaints = [line for line in done.stdout.splitlines() if "ERROR" in line or "WARNING" in line]
    assert (done.returncode == 0) == (not complaints), done.stderr
    return complaints


def in_es(sources: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """The same for OpenGL ES 3.1 with the one extension that it may lack."""
    return {(ending, for_es(source, (3, 1), {"GL_EXT_texture_buffer"})) for ending, source in sources}


def complaints_of_kernels(kernels: Iterable[Kernel], folder: Path) -> list[str]:
    """Those of validate about both forms of each kernel's text."""
    sources = {("comp", kernel.source) for kernel in kernels}
    return validate({*sources, *in_es(sources)}, folder)


def compile_spirv(source: str) -> Module:
    """Compile for Vulkan 1.1, and have spirv-val check it where that is installed.

    Raises ValueError with their errors, OSError without glslang.
    """
    text, bindings = to_vulkan(source)
    with tempfile.TemporaryDirectory() as folder:
        read, out = Path(folder, "shader.comp"), Path(folder, "shader.spv")
        read.write_text(text)
        commands = [[VALIDATOR, "--target-env", "vulkan1.1", str(read), "-o", str(out)]]
        if shutil.which("spirv-val"):
            commands.append(["spirv-val", "--target-env", "vulkan1.1", str(out)])
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise ValueError(f"{done.stdout}{done.stderr}".replace(str(read), "").strip())
        return Module(out.read_bytes(), bindings)


def _kind(declared: str) -> BindingKind:
    if "samplerBuffer" in declared:
        return "texels"
    return "storage" if re.search(r"\bbuffer\b", declared) else "uniform"

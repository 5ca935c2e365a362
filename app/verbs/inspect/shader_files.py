"""Writes the GLSL of every kernel to a folder, a file each."""

from collections.abc import Sequence
from pathlib import Path

from texelflow.gpu_delegate.base.debug import safe_name
from texelflow.gpu_delegate.base.errors import MediaError
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph


def write_shaders(folder: Path, compiled: Sequence[CompiledGraph]) -> tuple[Path, ...]:
    """The files, in the order of the dispatches: 003-conv+relu.comp, of several partitions p1-003-conv+relu.comp.

    Raises MediaError if they cannot be written.
    """
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for partition, program in enumerate(compiled):
            before = f"p{partition}-" if len(compiled) > 1 else ""
            for number, kernel in enumerate(program.kernels):
                written.append(folder / f"{before}{number:03}-{safe_name(kernel.name)}.comp")
                written[-1].write_text(kernel.source, encoding="utf-8")
    except OSError as error:
        raise MediaError(f"'{folder}' cannot be written: {error.strerror or error}; choose another place") from error
    return tuple(written)

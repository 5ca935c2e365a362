"""compile_graph with a cache: returns the CompiledGraph of an earlier run where one is kept.

Its key is all that it depends on: the graph, the device with its limits, tuning and what was measured on it, the
options, the driver, and the engine's own code. With it a model starts without passes, lowering and packing.
"""

import contextlib
import hashlib
import os
from functools import lru_cache
from pathlib import Path

from ..base import debug
from ..device.device import Device
from ..model.graph import Graph
from ..model.graph_digest import graph_digest
from ..plan.compile_options import COMPILE_DEFAULTS, CompileOptions
from ..targets.gl.program_cache import GRAPHS, ProgramCache
from ..targets.glsl.compiled_graph import CompiledGraph, compile_graph
from .saved_graph import restore_graph, save_graph

MOST_GRAPH_BYTES = 64 << 20  # of one that is kept, so that none drives out all others

_ENGINE = Path(__file__).parents[1]
_FOLDERS = (_ENGINE, _ENGINE.parent / "shaders")
_ENDINGS = (".py", ".comp", ".glsl")


def kept_graph(
    programs: ProgramCache, source: Graph, device: Device, options: CompileOptions = COMPILE_DEFAULTS
) -> CompiledGraph:
    """Errors are compile_graph's. With DEBUG it is compiled, so that what the compiler says is seen."""
    if not programs.is_on or debug.level() >= debug.RUN:
        return compile_graph(source, device, options)
    parts = (graph_digest(source), device, options, code_version())
    key = programs.key_of(*parts, name=source.name)
    data = programs.get(GRAPHS, key)
    kept = restore_graph(data, source) if data is not None else None
    if kept is not None:
        programs.loaded_graphs += 1
        return kept
    compiled = compile_graph(source, device, options)
    with contextlib.suppress(ValueError):
        content = save_graph(compiled)
        if len(content) <= MOST_GRAPH_BYTES:
            programs.add(GRAPHS, key, content)
    return compiled


@lru_cache(maxsize=1)
def code_version() -> str:
    """64 hex digits, other ones when a file of the engine changes."""
    digest = hashlib.sha256()
    for folder in _FOLDERS:
        for path in sorted(_files(str(folder))):
            name = os.path.relpath(path, folder)
            with open(path, "rb") as file:
                digest.update(name.encode() + b"\0" + file.read())
    return digest.hexdigest()


def _files(folder: str) -> list[str]:
    """All that compiles, in a folder and those in it; pathlib takes several times as long."""
    found, folders = [], [folder]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    folders.append(entry.path)
                elif entry.name.endswith(_ENDINGS):
                    found.append(entry.path)
    return found

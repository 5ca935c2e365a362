"""Loads a model for the CPU from the cache on disk, or compiles it anew.

An image's key is all that it depends on: the graph, the CPU, LLVM's version, the threads that share the work, and
this package's own files. With it a model starts without passes, planning and LLVM's optimizer. Weights are an entry of
their own, found by what they are: images for other numbers of threads share it, and processes the memory that it is
mapped to.
"""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ...base.disk_cache import DiskCache
from ...base.errors import DeviceError
from ...model.graph import Graph
from ...model.graph_digest import graph_digest
from ...model.packing import Float32Array
from .compiler import Compilation, CompiledCode, llvm_version
from .image import NativeImage, image_of, parse_image
from .machine import CpuTarget
from .native_program import NativeProgram, compile_native
from .planes import between_margins, in_reserved, with_margins
from .strips import strip_rounds
from .work import WorkRound

IMAGES = "networks"  # what they are called in the cache on disk
WEIGHTS = "weights"
_SHARE = 2  # of the cache, that one model's weights may be: more would drive out all others, and themselves


def load_image(
    graph: Graph, target: CpuTarget, threads: int = 1, cache: DiskCache | None = None
) -> tuple[NativeImage, CompiledCode]:
    """A model ready to run on this machine, which several networks may run at a time.

    Raises UnsupportedError for a model with unsupported ops, DeviceError without LLVM or for too much memory.
    """
    cache = DiskCache() if cache is None else cache
    key = image_key(graph, target, threads)
    kept = cache.get(IMAGES, key)
    image = None if kept is None else parse_image(kept, partial(_kept_weights, cache))
    if image is not None:
        try:
            return image, load_code(image, target)
        except DeviceError:  # whole, but of no use: it is replaced
            pass
    with Compilation(target) as compilation:
        program = compile_native(graph, target, written=compilation.add)
        image = image_of(program, compilation.objects(), rounds_of(program, threads))
    loaded = load_code(image, target)
    if image.weights.nbytes <= cache.most_bytes // _SHARE:
        weights = WEIGHTS, image.weights_digest, with_margins(image.weights)
        cache.put_all([weights, (IMAGES, key, image.to_bytes())])
    return with_weights_reserved(image), loaded


def _kept_weights(cache: DiskCache, digest: str) -> Float32Array | None:
    content = cache.mapped(WEIGHTS, digest)
    return None if content is None else between_margins(content)


def with_weights_reserved(image: NativeImage) -> NativeImage:
    """The same, its weights where kernels can read them."""
    return replace(image, weights=in_reserved(image.weights))


def load_code(image: NativeImage, target: CpuTarget) -> CompiledCode:
    """The functions of an image. Raises DeviceError for object files that are none."""
    return CompiledCode(image.objects, sorted({step.symbol for step in image.steps}), {}, target)


def rounds_of(program: NativeProgram, threads: int) -> Sequence[WorkRound]:
    """The order of a program's work for so many threads."""
    return strip_rounds(program.pixels, threads, program.target.caches.l2_bytes)


def image_key(graph: Graph, target: CpuTarget, threads: int) -> str:
    """All that an image depends on; the name is for people."""
    parts = (*vars(target).values(), llvm_version(), threads, graph_digest(graph), *compiling_files())
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()
    return f"{graph.name[:100]} {target.name} {threads} thread{'s' if threads > 1 else ''} {digest}"


def compiling_files() -> list[tuple[str, int, int]]:
    """The files that compile, which change while they are worked on."""
    found, folders = [], [str(Path(__file__).parents[2])]
    while folders:
        with os.scandir(folders.pop()) as entries:  # pathlib takes 15 ms for them
            for entry in entries:
                if entry.is_dir():
                    folders.append(entry.path)
                elif entry.name.endswith(".py"):
                    status = entry.stat()
                    found.append((entry.path, status.st_size, status.st_mtime_ns))
    return sorted(found)

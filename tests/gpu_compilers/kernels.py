"""The kernels of models for a family of GPUs, with their text."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from texelflow.app.models.catalogue import resolve
from texelflow.app.models.networks import NETWORKS, write_network
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.device.device import Device
from texelflow.gpu_delegate.device.families import TUNINGS
from texelflow.gpu_delegate.device.limits import Limits
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.layout import Precision, ceil_div
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.reading.reader import load_model
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import compile_partitions
from texelflow.gpu_delegate.targets.glsl.glsl_kernel import Kernel
from texelflow.gpu_delegate.targets.glsl.shader import for_es

MODELS = ("selfie", "selfie-landscape", "pose-landmark", "deeplab-v3")
NETWORK_FOLDER = Path("build", "networks")


@dataclass(frozen=True)
class Dispatch:
    """One kernel of a model, as one GPU gets it."""

    number: int
    name: str
    groups: int
    threads: int  # of a work-group
    source: str

    def simd_threads(self, width: int | None) -> int:
        """How many SIMD threads of this width the dispatch has; without a width, how many threads."""
        return self.groups * ceil_div(self.threads, width or 1)

    @property
    def key(self) -> str:
        """What tells one text of a kernel from another."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:16]


def device_of(family: str, limits: Limits) -> Device:
    """What kernels for a family of GPUs are made for, where drivers round as they should. Raises KeyError."""
    return Device(replace(limits, packs_halves=TUNINGS[family].tries_packing), TUNINGS[family])


def models_in(place: str) -> list[str]:
    """The models of a folder, as files; what is no folder is one itself. Raises UsageError for a folder without any."""
    if not Path(place).is_dir():
        return [place]
    if found := sorted(map(str, Path(place).glob("*.tflite"))):
        return found
    raise UsageError(f"{place}: no file there ends in .tflite")


def dispatches(model: str, device: Device, precision: Precision = "fp32") -> tuple[Dispatch, ...]:
    """The kernels of all of a model's partitions: none for one that is left to the CPU. Raises CatalogueError."""
    found = compile_partitions(graph_of(model), device, CompileOptions(precision=precision)).compiled
    kernels = [kernel for each in found for kernel in each.kernels]
    return tuple(_dispatch(number, kernel) for number, kernel in enumerate(kernels))


def distinct(found: Iterable[Dispatch]) -> dict[str, str]:
    """Each text once, by its key."""
    return {dispatch.key: dispatch.source for dispatch in found}


def texts_of(models: Iterable[str], family: str) -> set[str]:
    """The kernels of models in GLSL 4.30, with the tuning of a family and OpenGL's least limits."""
    device = device_of(family, Limits())
    return {dispatch.source for model in models for dispatch in dispatches(model, device)}


def texts_for_es(models: Iterable[str], family: str) -> set[str]:
    """The same for OpenGL ES 3.1 with buffer textures."""
    return {for_es(source, (3, 1), {"GL_EXT_texture_buffer"}) for source in texts_of(models, family)}


def _dispatch(number: int, kernel: Kernel) -> Dispatch:
    (x, y, z), (u, v, w) = kernel.grid, kernel.local
    return Dispatch(number, kernel.name, x * y * z, u * v * w, kernel.source)


@cache
def graph_of(model: str) -> Graph:
    """A published network, a model of the catalogue, fetched if need be, or that of a file.

    Raises CatalogueError, ModelError, OSError.
    """
    path = write_network(model, NETWORK_FOLDER) if model in NETWORKS else resolve(model).path
    return load_model(str(path))

"""Names of models and a family of GPUs go in; their kernels come out, each with its text for an API."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from texelflow.app.models.catalogue import fetch
from texelflow.app.models.networks import NETWORKS, write_network
from texelflow.gpu_delegate.device import Device
from texelflow.gpu_delegate.families import TUNINGS
from texelflow.gpu_delegate.graph import Graph
from texelflow.gpu_delegate.kernel import Kernel
from texelflow.gpu_delegate.layout import Precision, ceil_div
from texelflow.gpu_delegate.limits import Limits
from texelflow.gpu_delegate.program import compile_graph
from texelflow.gpu_delegate.reading.reader import load_model

from .platforms import Api

MODELS = ("selfie", "selfie-landscape", "pose-landmark", "deeplab-v3")
NETWORK_FOLDER = Path("build", "networks")
_ES = (
    "#version 310 es\n#extension GL_EXT_texture_buffer : require\n"
    "precision highp float;\nprecision highp int;\nprecision highp samplerBuffer;\n"
)


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
    """What kernels for a family of GPUs are made for."""
    return Device(limits, TUNINGS[family])


def dispatches(model: str, device: Device, api: Api, precision: Precision = "fp32") -> tuple[Dispatch, ...]:
    """A model's kernels. Raises CatalogueError, UnsupportedError, DeviceError."""
    kernels = compile_graph(_graph(model), device, precision=precision).kernels
    return tuple(_dispatch(number, kernel, api) for number, kernel in enumerate(kernels))


def distinct(found: Iterable[Dispatch]) -> dict[str, str]:
    """Each text once, by its key."""
    return {dispatch.key: dispatch.source for dispatch in found}


def as_es(source: str) -> str:
    """A kernel in OpenGL ES Shading Language 3.10 with buffer textures."""
    return source.replace("#version 430\n", _ES, 1)


def _dispatch(number: int, kernel: Kernel, api: Api) -> Dispatch:
    (x, y, z), (u, v, w) = kernel.grid, kernel.local
    return Dispatch(number, kernel.name, x * y * z, u * v * w, as_es(kernel.source) if api == "es" else kernel.source)


@cache
def _graph(model: str) -> Graph:
    path = write_network(model, NETWORK_FOLDER) if model in NETWORKS else fetch(model)
    return load_model(str(path))

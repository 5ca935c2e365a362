"""The usage records that a network's memory is planned from, before and after fusion.

Before: those of its operators (op_records). After: those of the compiled program, in PHWC4, inputs and outputs too,
since they lie in the same memory; inputs are written before each run. A network that the GPU runs in part has several
programs, each with memory of its own.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from texelflow.gpu_delegate.base.errors import CatalogueError, DeviceError, UnsupportedError
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.memory.memory_options import REWRITTEN
from texelflow.gpu_delegate.plan.memory.op_graph import op_records
from texelflow.gpu_delegate.plan.memory.records import UsageRecord
from texelflow.gpu_delegate.reading.reader import load_model
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import compile_partitions
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.native_program import compile_native

from ...models.catalogue import CATALOGUE, Progress, resolve
from ...models.networks import ALL_NETWORKS, drawn

GraphKind = Literal["ops", "fused", "synthetic"]
# The papers' networks, those of TensorFlow's article, and what the program itself runs.
PLANNED = (
    "selfie", "selfie-landscape", "mobilenet-v1", "mobilenet-v2", "deeplab-v3", "inception-v3", "posenet",
    "ssd-mobilenet", "face-detection-short", "hand-landmark-full", "pose-landmark", "mobilebert",
)  # fmt: skip
SYNTHETIC = 10_000  # records
_LONGEST = 30  # tasks that a synthetic tensor is alive for, but for one in a hundred
_ROUNDING = 64  # bytes that synthetic sizes are multiples of


@dataclass(frozen=True)
class GraphRecords:
    """What is planned of a network: the records of each of its programs."""

    network: str
    graph: GraphKind
    programs: tuple[tuple[UsageRecord, ...], ...]
    alignment_bytes: int = 1
    cpu_path_bytes: int | None = None  # that the CPU path takes for the same network
    note: str = ""

    @property
    def tensors(self) -> int:
        return sum(map(len, self.programs))


def load_network(name: str, progress: Progress | None = None) -> Graph:
    """A published network, a model of the catalogue or a file. Raises CatalogueError, ModelError."""
    if name in ALL_NETWORKS and name not in CATALOGUE:
        return drawn(name).graph(name)
    try:
        path = resolve(name, progress).path
    except CatalogueError as error:
        if name in CATALOGUE:  # it cannot be fetched
            raise
        raise CatalogueError(f"{error}; published networks are: {', '.join(sorted(ALL_NETWORKS))}") from None
    return load_model(path)


def unfused(name: str, graph: Graph) -> GraphRecords:
    """Tensors between operators, float32 as in the file."""
    return GraphRecords(name, "ops", (op_records(graph),))


def fused(name: str, graph: Graph) -> GraphRecords:
    """Tensors between dispatches, as planned for a software renderer."""
    options = CompileOptions(memory=REWRITTEN)
    try:
        compiled, note = [compile_graph(graph, SOFTWARE, options)], ""
    except (UnsupportedError, DeviceError) as error:
        found = compile_partitions(graph, SOFTWARE, options)
        compiled, left = list(found.compiled), len(found.reasons)
        note = f"{name}: {len(compiled)} programs, {left} of {len(graph.nodes)} operators stay on the CPU: {error}"
    programs = tuple(program.records for program in compiled)
    return GraphRecords(name, "fused", programs, SOFTWARE.offset_alignment_bytes, _cpu_path_bytes(graph), note)


def synthetic(count: int = SYNTHETIC) -> GraphRecords:
    """As many records, a new tensor at each task: most are read soon, some much later, as in networks with skips."""
    rng = np.random.default_rng(0)
    sizes = _ROUNDING * rng.integers(1, 1 << 14, count)
    lives = np.where(rng.random(count) < 0.01, rng.integers(_LONGEST, count, count), rng.integers(1, _LONGEST, count))
    ends = np.minimum(np.arange(count) + lives, count)
    rows = enumerate(zip(sizes.tolist(), ends.tolist(), strict=True))
    records = tuple(UsageRecord(task, size, task, end) for task, (size, end) in rows)
    return GraphRecords(f"{count} records", "synthetic", (records,))


def _cpu_path_bytes(graph: Graph) -> int | None:
    """The arena of the code for this machine's CPU; None where there is no such code."""
    try:
        return compile_native(graph, native_target()).plan.total_bytes
    except (UnsupportedError, DeviceError):
        return None

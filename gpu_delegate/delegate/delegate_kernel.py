"""A partition goes in; what TensorFlow Lite runs in its place, as one operator of its graph, comes out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..errors import UsageError
from ..graph import Graph, Shape, Tensor
from ..reading.resizing import read_resized
from .engine import DelegateEngine, LoadedPartition
from .native_tensors import memory_of, reshape, shape_at, tensor_at
from .structs import TfLiteContext, TfLiteTensor


@dataclass(frozen=True)
class KernelPlan:
    """A partition, and where the values of tensors go that cross its border."""

    part: Graph  # as a graph of its own
    share: float  # of the time for compilation
    uploads: tuple[int, ...]  # inputs whose values are needed
    downloads: tuple[int, ...]  # outputs that others than partitions read
    kept: tuple[int, ...]  # outputs that partitions alone read


class DelegateKernel:
    """One partition in an interpreter, loaded for the shapes that its inputs have there."""

    def __init__(
        self, engine: DelegateEngine, model: bytes, plan: KernelPlan, loaded: LoadedPartition | None = None
    ) -> None:
        """`model` is the file that the partition is part of; `loaded` is it in OpenGL, if that is done already."""
        self.plan = plan
        self._engine, self._model, self._loaded = engine, model, loaded
        self._has_run = False

    def prepare(self, context: TfLiteContext) -> None:
        """Load the partition for the shapes of its inputs, and give its outputs theirs.

        Raises UnsupportedError for shapes that its operators do not take, DeviceError for too large ones.
        """
        part = self.plan.part
        shapes = {index: shape_at(context, index) for index in part.inputs}
        if self._loaded is None or shapes != _shapes(self._loaded.graph, part.inputs):
            self._load(shapes)
        for index in (*self.plan.downloads, *self.plan.kept):
            reshape(context, index, self._tensor(index).shape)

    def run(self, context: TfLiteContext, makers: Mapping[int, "DelegateKernel"]) -> None:
        """From inputs in TensorFlow Lite's memory, or in that of partitions that have made them, to outputs there."""
        border = self._ready().border
        uploads = [(index, *self.memory(tensor_at(context, index), index)) for index in self.plan.uploads]
        downloads = [(index, *self.memory(tensor_at(context, index), index)) for index in self.plan.downloads]

        def work(_: object) -> None:
            for index, address, size_bytes in uploads:
                border.upload(index, address, size_bytes)
            border.run()
            for index, address, size_bytes in downloads:
                border.read(index, address, size_bytes)

        self._has_run = False
        self._engine.call(work)
        self._has_run = True

    def fetch(self, index: int, found: TfLiteTensor) -> None:
        """Copy an output that has been kept into TensorFlow Lite's memory. Raises UsageError if there is none."""
        if not self._has_run:
            raise UsageError(f"tensor {index} has no value: its partition has not run since it was prepared")
        border, (address, size_bytes) = self._ready().border, self.memory(found, index)
        self._engine.call(lambda _: border.read(index, address, size_bytes))

    def release(self) -> None:
        """Free what is loaded; a second call does nothing."""
        if self._loaded is not None:
            self._engine.unload(self._loaded)
            self._loaded = None

    def memory(self, found: TfLiteTensor, index: int) -> tuple[int, int]:
        """Address and size in bytes of a tensor of the border. Raises UsageError."""
        return memory_of(found, self._tensor(index))

    def _load(self, shapes: Mapping[int, Shape]) -> None:
        """What was loaded for other shapes stays if this fails."""
        part = self.plan.part
        if shapes != _shapes(part, shapes):
            part = read_resized(self._model, part, shapes)
        loaded = self._engine.load(self._engine.compile(part, self.plan.share))
        self.release()
        self._loaded, self._has_run = loaded, False

    def _tensor(self, index: int) -> Tensor:
        return self._ready().graph.tensors[index]

    def _ready(self) -> LoadedPartition:
        if self._loaded is None:
            raise UsageError("the partition has not been prepared; call allocate_tensors()")
        return self._loaded


def _shapes(graph: Graph, tensors: Iterable[int]) -> dict[int, Shape]:
    return {index: graph.tensors[index].shape for index in tensors}

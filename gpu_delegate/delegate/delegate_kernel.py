"""A partition goes in; what TensorFlow Lite runs in its place, as one operator of its graph, comes out."""

from collections.abc import Iterable, Mapping

from ..errors import UsageError
from ..graph import Graph, Shape, Tensor
from ..reading.resizing import read_resized
from .engine import DelegateEngine, LoadedPartition
from .native_tensors import memory_of, reshape, shape_at, tensor_at
from .planning import KernelPlan
from .structs import TfLiteContext, TfLiteTensor


class DelegateKernel:
    """One partition in an interpreter, loaded for the shapes that its inputs have there."""

    def __init__(self, engine: DelegateEngine, file: bytes, plan: KernelPlan, loaded: LoadedPartition | None) -> None:
        """`file` is the model that the partition is part of; `loaded` is it in OpenGL, if that is done already."""
        self.plan = plan
        self._engine, self._file, self._loaded = engine, file, loaded
        self._has_values = False  # of its last run, for its present shapes

    def prepare(self, context: TfLiteContext) -> None:
        """Load the partition for the shapes of its inputs, and give its outputs theirs.

        Raises UnsupportedError for shapes that its operators do not take, DeviceError for too large ones.
        """
        self._has_values = False
        inputs = self.plan.part.inputs
        shapes = {index: shape_at(context, index) for index in inputs}
        if self._loaded is None or shapes != _shapes(self._loaded.graph, inputs):
            self._load(shapes)
        for index in self.plan.outputs:
            reshape(context, index, self._tensor(index).shape)

    def run(self, context: TfLiteContext) -> None:
        """From inputs in TensorFlow Lite's memory to outputs there, but for those that are kept."""
        border = self._ready().border
        uploads = [(index, *self._memory(context, index)) for index in self.plan.uploads]
        downloads = [(index, *self._memory(context, index)) for index in self.plan.downloads]

        def work(_: object) -> None:
            for index, address, size_bytes in uploads:
                border.upload(index, address, size_bytes)
            border.run()
            for index, address, size_bytes in downloads:
                border.read(index, address, size_bytes)

        self._has_values = False
        self._engine.call(work)
        self._has_values = True

    def fetch(self, index: int, found: TfLiteTensor) -> None:
        """Copy an output into TensorFlow Lite's memory. Raises UsageError if there is none."""
        if not self._has_values:
            raise UsageError(f"tensor {index} has no value: what computes it has not run since it was prepared")
        border, (address, size_bytes) = self._ready().border, memory_of(found, self._tensor(index))
        self._engine.call(lambda _: border.read(index, address, size_bytes))

    def release(self) -> None:
        """Free what is loaded; a second call does nothing."""
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            self._engine.unload(loaded)

    def _load(self, shapes: Mapping[int, Shape]) -> None:
        """What was loaded for other shapes stays if this fails."""
        compiled = self.plan.compiled
        if shapes != _shapes(self.plan.part, shapes):
            part = read_resized(self._file, self.plan.part, shapes)
            compiled = self._engine.compile(part, self.plan.share)
        loaded = self._engine.load(compiled)
        self.release()
        self._loaded = loaded

    def _memory(self, context: TfLiteContext, index: int) -> tuple[int, int]:
        return memory_of(tensor_at(context, index), self._tensor(index))

    def _tensor(self, index: int) -> Tensor:
        return self._ready().graph.tensors[index]

    def _ready(self) -> LoadedPartition:
        if self._loaded is None:
            raise UsageError("the operator has not been prepared; call allocate_tensors()")
        return self._loaded


def _shapes(graph: Graph, tensors: Iterable[int]) -> dict[int, Shape]:
    return {index: graph.tensors[index].shape for index in tensors}

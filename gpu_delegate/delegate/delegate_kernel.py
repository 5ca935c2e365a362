"""One partition in an interpreter, which TensorFlow Lite runs as one operator of its graph."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from ..base.errors import UsageError
from ..model.graph import Graph, Shape, Tensor
from ..reading.resizing import read_resized
from .bound_tensors import TensorBinding
from .engine import DelegateEngine, LoadedPartition
from .io_binding import IoBinding
from .kept_partitions import KeptPartitions
from .live_constants import with_constants_of
from .native_tensors import array_at, memory_of, reshape, shape_at, tensor_at
from .planning import KernelPlan
from .structs import TfLiteContext, TfLiteTensor
from .variable_marks import variables_reset

NO_SOURCES: Mapping[int, "DelegateKernel"] = MappingProxyType({})


class DelegateKernel:
    """One partition in an interpreter, loaded for the shapes that its inputs have there."""

    def __init__(
        self,
        engine: DelegateEngine,
        file: bytes,
        plan: KernelPlan,
        loaded: LoadedPartition | None,
        read_on_cpu: frozenset[int],
        subgraph: int = 0,
    ) -> None:
        """`file` is the model that the partition is part of; `loaded` is it in OpenGL, if that is done already.

        Operators of TensorFlow Lite read the tensors `read_on_cpu`, wherever else these go.
        """
        self.plan = plan
        self.bindings: dict[tuple[int, bool], TensorBinding] = {}  # by tensor, and whether as an output
        self._engine, self._loaded, self._read_on_cpu = engine, loaded, read_on_cpu
        self._kept, self._subgraph = KeptPartitions(engine), subgraph
        self._file = self._planned_file = file  # with the constants that it is loaded with; as it was at first
        self._is_nan: set[int] = set()  # outputs that are bound, and whose tensors in RAM have been marked
        self._has_values = False  # of its last run, for its present shapes

    def prepare(self, context: TfLiteContext) -> None:
        """Load the partition for the shapes of its inputs and the constants in memory, and give its outputs shapes.

        Raises UnsupportedError for shapes that its operators do not take, DeviceError for too large ones.
        """
        self._has_values = False
        inputs = self.plan.part.inputs
        shapes = {index: shape_at(context, index) for index in inputs}
        file = with_constants_of(context, self._file, self.plan.constants)
        if self._loaded is None or file is not self._file or shapes != _shapes(self._loaded.graph, inputs):
            self._load(file, shapes)
        for index in self.plan.outputs:
            reshape(context, index, self._tensor(index).shape)
        self._is_nan.clear()
        for binding in self.bindings.values():
            self._bind_loaded(binding)

    def run(self, context: TfLiteContext, sources: "Mapping[int, DelegateKernel]" = NO_SOURCES) -> None:
        """From inputs in TensorFlow Lite's memory to outputs there, but for those that are kept or bound.

        `sources` are the partitions whose outputs some inputs are, which are not in that memory.
        """
        program, io = self._ready().program, self._ready().io
        reset = variables_reset(context, program.compiled.graph.states)
        inputs = [index for index in self.plan.uploads if (index, False) not in self.bindings]
        taken = [(index, sources[index].io_with(index)) for index in inputs if index in sources]
        uploads = [(index, *self._memory(context, index)) for index in inputs if index not in sources]
        downloads = [(index, *self._memory(context, index)) for index in self.plan.downloads if self._is_in_ram(index)]

        def work(_: object) -> None:
            if reset:
                program.reset_states(reset)
            for index, source in taken:
                io.take(index, source)
            for index, address, size_bytes in uploads:
                io.upload(index, address, size_bytes)
            io.run()
            if downloads:
                io.read_all(downloads)

        self._has_values = False
        self._engine.call(work)
        self._has_values = True
        self._mark(context)

    def notice_resets(self, context: TfLiteContext) -> None:
        """Reset what TensorFlow Lite has set to zero since the last run."""
        if self._loaded is not None:
            program = self._loaded.program
            if reset := variables_reset(context, program.compiled.graph.states):
                self._engine.call(lambda _: program.reset_states(reset))

    def io_with(self, index: int) -> IoBinding:
        """Where an output is after a run. Raises UsageError if there has been none."""
        if not self._has_values:
            raise UsageError(f"tensor {index} has no value: what computes it has not run since it was prepared")
        return self._ready().io

    def fetch(self, index: int, found: TfLiteTensor) -> None:
        """Copy an output into TensorFlow Lite's memory. Raises UsageError if there is none."""
        io, (address, size_bytes) = self.io_with(index), memory_of(found, self._tensor(index))
        self._engine.call(lambda _: io.read(index, address, size_bytes))

    def has(self, binding: TensorBinding) -> bool:
        """Whether it has an input, or an output, of that number."""
        return binding.index in (self.plan.outputs if binding.is_output else self.plan.uploads)

    def bind(self, binding: TensorBinding) -> TensorBinding:
        """From now on; with the shape that the tensor has now. Raises UsageError for what does not fit that."""
        self._bind_loaded(binding)
        bound = replace(binding, shape=self._tensor(binding.index).shape)
        self.bindings[binding.index, binding.is_output] = bound
        return bound

    def unbind(self, index: int) -> None:
        """From now on; nothing happens to a tensor that is not bound."""
        if self.bindings.pop((index, False), None) or self.bindings.pop((index, True), None):
            io = self._ready().io
            self._engine.call(lambda _: io.unbind(index))
            self._is_nan.discard(index)

    def release(self) -> None:
        """Free what is loaded; a second call does nothing."""
        self._kept.clear()
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            self._engine.unload(loaded)

    def _load(self, file: bytes, shapes: Mapping[int, Shape]) -> None:
        """What was loaded before stays if this fails; after another change of shapes it is taken again."""
        loaded = self._kept.take(shapes) if file is self._file else None
        if loaded is None:
            loaded = self._compiled(file, shapes)
        if file is not self._file:
            self.release()
        elif self._loaded is not None:
            for index, _ in self.bindings:
                self._loaded.io.unbind(index)
            self._kept.keep(_shapes(self._loaded.graph, shapes), self._loaded)
        self._file, self._loaded = file, loaded

    def _compiled(self, file: bytes, shapes: Mapping[int, Shape]) -> LoadedPartition:
        compiled = self.plan.compiled
        if file is not self._planned_file or shapes != _shapes(self.plan.part, shapes):
            part = read_resized(file, self.plan.part, shapes)
            compiled = self._engine.compile(part, self.plan.share)
        return self._engine.load(compiled, self._subgraph)

    def _bind_loaded(self, binding: TensorBinding) -> None:
        io, shape = self._ready().io, self._tensor(binding.index).shape
        if binding.shape not in (None, shape):
            raise UsageError(
                f"tensor {binding.index} was bound for the shape {list(binding.shape)} and has {list(shape)} now; "
                "unbind it before it is resized, and bind what fits afterwards"
            )
        bind = io.bind_output if binding.is_output else io.bind_input
        self._engine.call(lambda _: bind(binding.index, binding.given, binding.layout))

    def _is_in_ram(self, index: int) -> bool:
        """Whether an output is copied to TensorFlow Lite's memory."""
        return index in self._read_on_cpu or (index in self.plan.downloads and (index, True) not in self.bindings)

    def _mark(self, context: TfLiteContext) -> None:
        """Fill floats with NaN, once, that stay on the GPU: whoever asks for them all the same gets no old values."""
        for index in self.plan.outputs:
            if index not in self._is_nan and not self._is_in_ram(index):
                values = array_at(*self._memory(context, index), self._tensor(index))
                if values.dtype.kind == "f":
                    values.fill(np.nan)
                self._is_nan.add(index)

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

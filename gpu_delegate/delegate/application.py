"""A graph of TensorFlow Lite's interpreter goes in; it comes out with its supported operators replaced."""

import ctypes
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..compiled_partitions import CompiledPartitions, compile_partitions
from ..errors import ModelError, UnsupportedError, UsageError
from ..layout import Precision
from ..partition import Partition, subgraph
from ..reading.reader import read_model
from .callbacks import Replace
from .delegate_kernel import DelegateKernel, KernelPlan
from .engine import DelegateEngine, LoadedPartition
from .gl_thread import GlWorker
from .report import report_lines
from .selection import rates_of, selection
from .structs import TfLiteContext, TfLiteDelegateParams, TfLiteTensor, integers_at


@dataclass(frozen=True)
class DelegatedPartition:
    """What the GPU computes as one operator of TensorFlow Lite."""

    nodes: tuple[int, ...]  # operators by their numbers in the file, ascending
    inputs: tuple[int, ...]  # tensors, as get_input_details()[k]["index"] numbers them
    outputs: tuple[int, ...]
    dispatches: int


class Application:
    """A delegate in one interpreter. TensorFlow Lite's calls arrive here."""

    def __init__(
        self,
        model: bytes | None,
        strict: bool,
        precision: Precision,
        budget_s: float,
        quiet: bool,
        most_partitions: int | None,
        least_nodes: int | None,
    ) -> None:
        self._model, self._strict, self._precision = model, strict, precision
        self._budget_s, self._quiet = budget_s, quiet
        self._most_partitions, self._least_nodes = most_partitions, least_nodes
        self._engine: DelegateEngine | None = None
        self._place = 0  # of the context that it is applied to
        self._found: CompiledPartitions | None = None
        self._loaded: dict[Partition, LoadedPartition] = {}  # that no operator has taken yet
        self._kernels: dict[int, DelegateKernel | None] = {}  # None: a group of constants, which others compute
        self._last_number = 0
        self._is_released = False
        self.renderer = ""
        self.error: BaseException | None = None

    @property
    def partitions(self) -> tuple[DelegatedPartition, ...]:
        """What runs on the GPU, in the order in which it runs."""
        found = self._found
        pairs = zip(found.partitions, found.compiled, strict=True) if found else ()
        return tuple(DelegatedPartition(p.nodes, p.inputs, p.outputs, len(c.kernels)) for p, c in pairs)

    @property
    def reasons(self) -> Mapping[int, str]:
        """Why operators are left to the CPU."""
        return self._found.reasons if self._found else MappingProxyType({})

    # What TensorFlow Lite calls -----------------------------------------------------------------------------------

    def apply(self, context: TfLiteContext, replace: Replace) -> None:
        """Leaves the graph as it is if anything fails before operators are replaced; raises that if it is strict.

        It is called again where TensorFlow Lite has undone all delegates, to allow for other shapes, and is called for
        the branches and bodies of control flow, which are left alone.
        """
        place = ctypes.addressof(context)
        if self._place not in (0, place):
            return
        self._place = place
        try:
            if self._found is None:
                self._found = self._plan(context)
        except Exception as error:
            if self._strict:
                raise
            self.failed(error)
            self._tell(f"texelflow: TensorFlow Lite runs the whole model on the CPU: {error}")
            return
        nodes = sorted(number for partition in self._found.partitions for number in partition.nodes)
        if nodes:
            replace(tuple(nodes))

    def make_kernel(self, params: TfLiteDelegateParams) -> int:
        """A kernel for one of the partitions, known by its operators."""
        found, nodes = self._planned(), set(integers_at(params.nodes_to_replace))
        self._last_number += 1
        constants = {number for partition in found.partitions for number in partition.constants}
        if nodes <= constants:
            self._kernels[self._last_number] = None
            return self._last_number
        for partition in found.partitions:
            if set(partition.computed) == nodes - constants:
                inputs = set(integers_at(params.input_tensors))
                plan = self._kernel_plan(found, partition, inputs)
                loaded = self._loaded.pop(partition, None)
                self._kernels[self._last_number] = DelegateKernel(self._opened(), self._model or b"", plan, loaded)
                return self._last_number
        raise UnsupportedError(f"TensorFlow Lite has formed a group that was not planned, of operators {sorted(nodes)}")

    def free_kernel(self, number: int) -> None:
        kernel = self._kernels.pop(number, None)
        if kernel is not None and not self._is_released:
            kernel.release()

    def prepare_kernel(self, context: TfLiteContext, number: int) -> None:
        kernel = self._kernel(number)
        if kernel is not None:
            kernel.prepare(context)

    def run_kernel(self, context: TfLiteContext, number: int) -> None:
        kernel = self._kernel(number)
        if kernel is not None:
            kernel.run(context, {})

    def fetch(self, handle: int, tensor: TfLiteTensor) -> None:
        raise UsageError(f"buffer {handle} does not exist")

    def failed(self, error: BaseException) -> None:
        self.error = error

    # ---------------------------------------------------------------------------------------------------------------

    def release(self) -> None:
        """Free all that is in OpenGL: kernels raise from now on. A second call does nothing."""
        self._is_released = True
        self._kernels.clear()
        self._loaded.clear()
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.release()

    def _plan(self, context: TfLiteContext) -> CompiledPartitions:
        """Decide and load everything. Raises what fails."""
        if self._model is None:
            self._model = _find_model(context)
        graph = read_model(self._model)
        engine = self._opened()
        rates = rates_of(engine.is_software)
        found = compile_partitions(
            graph, engine.device, precision=self._precision, compile_budget_s=self._budget_s,
            select=selection(rates, self._most_partitions, self._least_nodes),
        )  # fmt: skip
        for partition, compiled in zip(found.partitions, found.compiled, strict=True):
            self._loaded[partition] = engine.load(compiled)
        for line in report_lines(found):
            self._tell(line)
        return found

    def _kernel_plan(self, found: CompiledPartitions, partition: Partition, inputs: set[int]) -> KernelPlan:
        """`inputs` are those that TensorFlow Lite keeps in memory for it; of others the shapes alone are needed."""
        uploads = tuple(index for index in partition.inputs if index in inputs)
        share = len(partition.nodes) / (len(found.graph.nodes) - len(found.reasons))
        return KernelPlan(subgraph(found.graph, partition), min(1.0, share), uploads, partition.outputs, ())

    def _kernel(self, number: int) -> DelegateKernel | None:
        """Raises UsageError for one that does not exist."""
        if self._is_released:
            raise UsageError("this GpuDelegate has been released; make another one")
        if number not in self._kernels:
            raise UsageError(f"the operator was not made: {self.error}")
        return self._kernels[number]

    def _planned(self) -> CompiledPartitions:
        if self._found is None:
            raise UsageError("nothing has been planned")
        return self._found

    def _opened(self) -> DelegateEngine:
        if self._is_released:
            raise UsageError("this GpuDelegate has been released; make another one")
        if self._engine is None:
            self._engine = DelegateEngine(GlWorker(), self._precision, self._budget_s)
            self.renderer = self._engine.renderer
        return self._engine

    def _tell(self, line: str) -> None:
        if not self._quiet:
            print(line, file=sys.stderr)


def model_bytes(path: str | os.PathLike[str]) -> bytes:
    """A file's bytes. Raises ModelError."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ModelError(f"{os.fspath(path)!r}: cannot be read ({error.strerror})") from error


def _find_model(context: TfLiteContext) -> bytes:
    """The file that constants of a graph lie in, which their Allocation knows: its entries are those of a C++ class."""
    method = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)
    for index in range(context.tensors_size):
        allocation = context.tensors[index].allocation
        if allocation:
            table = ctypes.c_void_p.from_address(allocation).value or 0
            base, size = (ctypes.c_void_p.from_address(table + 8 * entry).value or 0 for entry in (2, 3))
            data = ctypes.string_at(method(base)(allocation), method(size)(allocation))
            if data[4:8] == b"TFL3":
                return data
    raise ModelError("the model's file cannot be found; give GpuDelegate(model=PATH)")

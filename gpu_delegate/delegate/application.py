"""A graph of TensorFlow Lite's interpreter goes in; it comes out with its supported operators replaced."""

import ctypes
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..compiled_partitions import CompiledPartitions, compile_partitions
from ..errors import ModelError, UsageError
from ..layout import Precision
from ..partition import Partition
from ..program import CompiledGraph
from ..reading.reader import read_model
from ..runtime import Program, device_of
from .callbacks import Replace
from .delegate_kernel import DelegateKernel
from .gl_thread import GlThread
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

    def __init__(self, model: bytes | None, strict: bool, precision: Precision, budget_s: float, quiet: bool) -> None:
        self._model, self._strict, self._precision = model, strict, precision
        self._budget_s, self._quiet = budget_s, quiet
        self._thread: GlThread | None = None
        self._place = 0  # of the context that it is applied to
        self._found: CompiledPartitions | None = None
        self._programs: dict[Partition, Program] = {}  # that no operator has taken yet
        self._kernels: dict[int, DelegateKernel] = {}
        self._last_number = 0
        self.partitions: tuple[DelegatedPartition, ...] = ()
        self.reasons: Mapping[int, str] = MappingProxyType({})
        self.renderer = ""
        self.error: BaseException | None = None

    # What TensorFlow Lite calls -----------------------------------------------------------------------------------

    def apply(self, context: TfLiteContext, replace: Replace) -> None:
        """Leaves the graph as it is if anything fails; raises that if it is strict."""
        place = ctypes.addressof(context)
        if self._place not in (0, place):
            return  # a subgraph of a branch or a loop, which the reader does not read
        self._place = place
        try:
            self._plan(context)
        except Exception as error:
            if self._strict:
                raise
            self.failed(error)
            self._tell(f"texelflow: TensorFlow Lite runs the model on the CPU: {error}")
            return
        nodes = sorted(number for partition in self.partitions for number in partition.nodes)
        if nodes:
            replace(tuple(nodes))

    def make_kernel(self, context: TfLiteContext, params: TfLiteDelegateParams) -> int:
        nodes = integers_at(params.nodes_to_replace)
        partition = self._partition_of(nodes)
        program = self._programs.pop(partition) if partition.outputs else None
        self._last_number += 1
        self._kernels[self._last_number] = DelegateKernel(partition, program, self._gl())
        return self._last_number

    def free_kernel(self, number: int) -> None:
        self._kernels.pop(number).release()

    def prepare_kernel(self, context: TfLiteContext, number: int) -> None:
        self._kernels[number].prepare(context)

    def run_kernel(self, context: TfLiteContext, number: int) -> None:
        self._kernels[number].run(context)

    def fetch(self, handle: int, tensor: TfLiteTensor) -> None:
        raise UsageError(f"buffer {handle} does not exist")

    def failed(self, error: BaseException) -> None:
        self.error = error

    # Planning -----------------------------------------------------------------------------------------------------

    def _plan(self, context: TfLiteContext) -> None:
        """Decide and compile everything. Raises what fails."""
        graph = read_model(_find_model(context) if self._model is None else self._model)
        self._thread = self._thread or GlThread()
        device = self._thread.call(device_of)
        self.renderer = self._thread.call(lambda gl: gl.renderer)
        found = compile_partitions(graph, device, precision=self._precision, compile_budget_s=self._budget_s)
        pairs = list(zip(found.partitions, found.compiled, strict=True))
        for partition, compiled in pairs:
            self._programs[partition] = self._program(compiled)
        self._found, self.reasons = found, found.reasons
        self.partitions = tuple(
            DelegatedPartition(partition.nodes, partition.inputs, partition.outputs, len(compiled.kernels))
            for partition, compiled in pairs
        )

    def _program(self, compiled: CompiledGraph) -> Program:
        return self._gl().call(lambda gl: Program(gl, compiled))

    def _partition_of(self, nodes: tuple[int, ...]) -> Partition:
        assert self._found is not None
        constants = {number for partition in self._found.partitions for number in partition.constants}
        wanted = set(nodes) - constants
        if not wanted:
            return Partition(nodes, nodes, (), ())
        for partition in self._programs:
            if set(partition.nodes) - constants == wanted:
                return partition
        raise UsageError(f"TensorFlow Lite has formed a group of operators that was not planned: {sorted(nodes)}")

    def _gl(self) -> GlThread:
        if self._thread is None:
            raise UsageError("this GpuDelegate has been released")
        return self._thread

    def release(self) -> None:
        """Free all programs and the context; a second call does nothing."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        for kernel in self._kernels.values():
            kernel.release()
        programs, self._programs = self._programs, {}
        for program in programs.values():
            _free(thread, program)
        thread.close()

    def _tell(self, line: str) -> None:
        if not self._quiet:
            print(line, file=sys.stderr)


def _free(thread: GlThread, program: Program) -> None:
    thread.call(lambda _: program.release())


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

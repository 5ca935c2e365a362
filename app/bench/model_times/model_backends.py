"""Prepares a graph to be run on the GPU, on the CPU, or through the delegate, and measures what that takes."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any, Protocol

from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.cpu.delegation import Delegation
from texelflow.gpu_delegate.cpu.reference import Kernels, Reference
from texelflow.gpu_delegate.delegate.interpreter_delegate import gpu_delegate
from texelflow.gpu_delegate.delegate.native_delegate import native_delegate
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.targets.gl.context import Context, open_context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph
from texelflow.gpu_delegate.targets.glsl.glsl_kernel import compile_s
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork
from texelflow.gpu_delegate.tuning.store import tuned_device

from ...console import Console
from ...frame.inference.backends import delegate_options
from ...verbs.tune import tune_first
from .model_inputs import AnyValues, ModelInputs
from .model_options import ModelBench

InitTimes = Mapping[str, float]  # milliseconds by step

TIMED_GL = "run() to glFinish; inputs and outputs stay on the GPU"
TIMED_NATIVE = "one call of all steps; inputs and outputs stay in the network's memory"
TIMED_PARTS = "invoke() of TensorFlow Lite's interpreter, with parts in the CPU's own code"
TIMED_TFLITE = "invoke() of TensorFlow Lite's interpreter"
TIMED_DELEGATE = "invoke() of TensorFlow Lite's interpreter, copies to the GPU and back included"


class Runner(Protocol):
    """A model that is ready."""

    @property
    def init_ms(self) -> InitTimes: ...
    @property
    def timed(self) -> str:
        """What run() times."""

    @property
    def process_id(self) -> int | None:
        """Of the process that does the work, if it is another one."""

    def settle(self) -> None:
        """Be as in long runs from now on."""

    def run(self) -> float:
        """One inference; its milliseconds."""

    def outputs(self) -> tuple[AnyValues, ...]:
        """Those of one more run."""

    def places(self) -> Mapping[int, str]:
        """Where tensors of the file lie, by number, of which that is known."""

    def facts(self) -> dict[str, Any]:
        """What else there is to say of it, for JSON."""


@dataclass(frozen=True)
class GlRunner:
    """A program on the GPU."""

    context: Context
    program: Program
    init_ms: InitTimes
    compiling: Mapping[str, float]  # seconds of the CPU: estimated_s, budget_s, measured_s, with what caches have kept
    timed: str = TIMED_GL
    process_id: int | None = None

    def settle(self) -> None:
        """See Runner."""
        self.context.calls.settle()

    def run(self) -> float:
        """See Runner."""
        start = perf_counter()
        self.program.run()
        self.context.gl.glFinish()
        return (perf_counter() - start) * 1e3

    def outputs(self) -> tuple[AnyValues, ...]:
        """See Runner."""
        self.run()
        return tuple(self.program.read(tensor) for tensor in self.program.compiled.source.outputs)

    def places(self) -> Mapping[int, str]:
        """See Runner."""
        places = self.program.compiled.plan.places
        return {tensor: f"buffer {place.buffer}, byte {place.offset_bytes}" for tensor, place in places.items()}

    def facts(self) -> dict[str, Any]:
        """See Runner."""
        kernels = self.program.compiled.kernels
        return {
            "renderer": self.context.renderer,
            "gl_version": self.context.gl_version,
            "dispatches": len(kernels),
            "compiling": {name: round(seconds, 3) for name, seconds in self.compiling.items()},
            "mmac": round(sum(kernel.macs for kernel in kernels) / 1e6, 3),
        }


@dataclass(frozen=True)
class TfliteRunner:
    """TensorFlow Lite's interpreter, with or without the delegate."""

    reference: Reference
    inputs: Sequence[AnyValues]
    init_ms: InitTimes
    threads: int
    timed: str = TIMED_TFLITE
    process_id: int | None = None

    @property
    def delegation(self) -> Delegation | None:
        """What the delegate has taken over, if there is one."""
        return self.reference.delegation

    def settle(self) -> None:
        """See Runner."""

    def run(self) -> float:
        """See Runner."""
        self.reference.run(self.inputs)
        return self.reference.invoke_ms

    def outputs(self) -> tuple[AnyValues, ...]:
        """See Runner."""
        return self.reference.run(self.inputs)

    def places(self) -> Mapping[int, str]:
        """See Runner."""
        return {}

    def facts(self) -> dict[str, Any]:
        """See Runner."""
        delegation = self.delegation
        if delegation is None:
            return {"renderer": "TensorFlow Lite", "runtime": self.reference.runtime, "threads": self.threads}
        return {
            "renderer": delegation.renderer,
            "threads": self.threads,
            "dispatches": delegation.dispatches,
            "mmac": round(delegation.macs / 1e6, 3),
            "partitions": [list(partition) for partition in delegation.partitions],
            "operators": delegation.operators,
            "delegation": delegation.line,
        }


@dataclass(frozen=True)
class NativeRunner:
    """Code of our own on the CPU."""

    network: NativeNetwork
    init_ms: InitTimes
    timed: str = TIMED_NATIVE
    process_id: int | None = None

    def settle(self) -> None:
        """See Runner."""

    def run(self) -> float:
        """See Runner."""
        start = perf_counter()
        self.network.compute()
        return (perf_counter() - start) * 1e3

    def outputs(self) -> tuple[AnyValues, ...]:
        """See Runner."""
        self.run()
        return tuple(self.network.read(tensor) for tensor in self.network.image.outputs)

    def places(self) -> Mapping[int, str]:
        """See Runner."""
        return {}

    def facts(self) -> dict[str, Any]:
        """See Runner."""
        on_cpu = {"precision": self.network.image.precision, "renderer": f"{native_target().name} code on the CPU"}
        return {**on_cpu, "threads": self.network.pool.threads}


@contextlib.contextmanager
def gl_runner(graph: Graph, options: ModelBench, read_ms: float, console: Console) -> Iterator[GlRunner]:
    """The graph as one program. Raises UnsupportedError where it does not run there as a whole, DeviceError."""
    if options.compiling.fuse:
        tune_first(graph, options.compiling.precision, console)
    clock = _Steps(read_ms)
    with open_context() as context:
        clock.step("context")
        device = tuned_device(context, options.compiling.precision)
        compiled = compile_graph(graph, device, options.compiling)
        clock.step("planning")
        estimated_s = compile_s(compiled.kernels, device.tuning.operation_compile_us)
        before_s = process_time()
        with console.compilation() as progress:
            program = Program(context, compiled, progress)
        with program:
            clock.step("driver")
            compiling = {"estimated_s": estimated_s, "budget_s": options.compiling.compile_budget_s}
            compiling["measured_s"] = process_time() - before_s
            _write_inputs(program, compiled, options.inputs)
            yield GlRunner(context, program, clock.times_ms, compiling)


def tflite_runner(graph: Graph, options: ModelBench, read_ms: float) -> TfliteRunner:
    """The graph in TensorFlow Lite. Raises ModelError, UnsupportedError, DeviceError."""
    clock = _Steps(read_ms)
    delegate = gpu_delegate(_delegate_options(options)) if options.backend == "delegate" else None
    kernels: Kernels = "usual" if options.xnnpack else "optimized"
    reference = Reference(graph, options.threads, delegate=delegate, kernels=kernels)
    clock.step("interpreter")
    inputs = options.inputs.values(reference.input_shapes, reference.input_dtypes)
    delegation = reference.delegation
    timed = TIMED_DELEGATE if delegation and delegation.partitions else TIMED_TFLITE
    return TfliteRunner(reference, inputs, clock.times_ms, reference.threads, timed, reference.process_id)


@contextlib.contextmanager
def native_runner(
    graph: Graph, options: ModelBench, read_ms: float, console: Console
) -> Iterator[NativeRunner | TfliteRunner]:
    """The graph in code of our own, in parts where that is not all of it.

    Raises UnsupportedError for a model that has none that pays, ModelError, DeviceError.
    """
    clock = _Steps(read_ms)
    try:
        network = NativeNetwork.load(graph, options.threads, precision=options.compiling.precision)
    except UnsupportedError as error:
        if options.compiling.precision != "fp32":  # which parts and TensorFlow Lite have
            raise
        reference = Reference(graph, options.threads, delegate=native_delegate(options.threads))
        assert reference.delegation, "it has a delegate"
        with contextlib.closing(reference):
            reference.delegation.check_taken(error)
            clock.step("interpreter")
            console.note(f"{reference.delegation.line}: {error}")
            inputs = options.inputs.values(reference.input_shapes, reference.input_dtypes)
            threads, process_id = reference.threads, reference.process_id
            yield TfliteRunner(reference, inputs, clock.times_ms, threads, TIMED_PARTS, process_id)
        return
    with contextlib.closing(network):
        clock.step("compiling")
        dtypes = [dtype.name for dtype in network.input_dtypes]
        values = options.inputs.values(network.input_shapes, dtypes)
        for tensor, value in zip(network.image.inputs, values, strict=True):
            network.write(tensor, value)
        yield NativeRunner(network, clock.times_ms)


class _Steps:
    """Milliseconds of the steps of initialization, one behind the other."""

    def __init__(self, read_ms: float) -> None:
        self.times_ms = {"reading": read_ms}
        self._last_s = perf_counter()

    def step(self, name: str) -> None:
        """What has been done since the last one."""
        now_s = perf_counter()
        self.times_ms[name] = (now_s - self._last_s) * 1e3
        self._last_s = now_s


def _write_inputs(program: Program, compiled: CompiledGraph, inputs: ModelInputs) -> None:
    tensors = [compiled.tensor(tensor) for tensor in compiled.graph.inputs]
    values = inputs.values([tensor.shape for tensor in tensors], [tensor.dtype for tensor in tensors])
    for tensor, value in zip(compiled.graph.inputs, values, strict=True):
        program.write(tensor, value)


def _delegate_options(options: ModelBench) -> dict[str, Any]:
    return {**delegate_options(options.compiling), **options.delegate}

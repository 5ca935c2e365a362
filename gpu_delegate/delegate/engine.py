"""Compiles partitions and loads them in OpenGL, on the thread of the context."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..base.errors import DeviceError, UsageError
from ..device.device import Device
from ..model.graph import Graph
from ..model.layout import Precision
from ..model.state_values import StateValues, check_names
from ..plan.compile_options import CompileOptions
from ..programs.model_sharing import ModelSharing, graph_compiler, in_turns
from ..saving.kept_graph import code_version, kept_graph
from ..targets.gl.context import Context
from ..targets.gl.gl_states import GlStates
from ..targets.gl.program_cache import ProgramCache
from ..targets.gl.runtime import Program
from ..targets.glsl.compiled_graph import CompiledGraph
from ..tuning.store import tuned_device
from .io_binding import IoBinding
from .repacking import RepackingPrograms
from .serialization import Serialization, SerializedFile
from .synchronization import WaitType
from .worker import RELEASED, GlWorker

_VARIABLES = -1  # in the place of a subgraph: those of all subgraphs
_Result = TypeVar("_Result")


class LoadedPartition:
    """A partition in OpenGL: its program and its I/O binding."""

    def __init__(
        self,
        context: Context,
        compiled: CompiledGraph,
        shaders: RepackingPrograms,
        wait_type: WaitType,
        weights_cache: ModelSharing | None = None,
        states: GlStates | None = None,
        own_states: GlStates | None = None,
    ) -> None:
        """Variables are in `states`, what operators keep in `own_states`.

        Raises DeviceError, UsageError for what the cache does not take.
        """
        self.program = Program(context, compiled, weights_cache=weights_cache, states=states, own_states=own_states)
        try:
            self.io = IoBinding(self.program, shaders, wait_type)
        except BaseException:
            self.program.release()
            raise

    @property
    def graph(self) -> Graph:
        """The partition as it was read for its shapes."""
        return self.program.compiled.source

    def release(self) -> None:
        """Free all GL objects; a second call does nothing."""
        self.io.release()
        self.program.release()


@dataclass(frozen=True)
class _Opened:
    """What there is in a context before any partition."""

    device: Device
    shaders: RepackingPrograms
    renderer: str
    is_software: bool
    programs: ProgramCache
    serialized: SerializedFile | None


class DelegateEngine:
    """One context and all that a delegate has in it. Its methods may be called where the worker may be."""

    def __init__(
        self,
        worker: GlWorker,
        options: CompileOptions,
        wait_type: WaitType = "passive",
        weights_cache: ModelSharing | None = None,
        serialization: Serialization | None = None,
    ) -> None:
        """Takes the worker over. Raises as its calls do."""
        self._worker, self._options = worker, options
        self._wait_type, self._cache = wait_type, weights_cache
        self._loaded: set[LoadedPartition] = set()
        self._is_released = False
        self._states = dict[int, GlStates]()  # what operators keep, by their subgraph, and variables
        opened = worker.call(lambda gl: _opened(gl, options.precision, serialization, weights_cache))
        self.device, self._shaders, self.renderer = opened.device, opened.shaders, opened.renderer
        self.is_software, self._serialized = opened.is_software, opened.serialized
        self._programs = opened.programs

    @property
    def serialization_failure(self) -> str:
        """Why programs could not be written to the caller's directory; empty if they could, or if none is asked for."""
        return self._serialized.failure if self._serialized else ""

    @property
    def buffer_bytes(self) -> int:
        """Of the GL buffers of all partitions."""
        kept = sum(states.buffer_bytes for states in self._states.values())
        return kept + sum(loaded.program.buffer_bytes + loaded.io.buffer_bytes for loaded in self._loaded)

    @property
    def count(self) -> int:
        """How many partitions are loaded."""
        return len(self._loaded)

    def call(self, work: Callable[[Context], _Result]) -> _Result:
        """As the worker's. Raises UsageError, too, for what another thread has asked for while this was released."""

        def checked(context: Context) -> _Result:
            if self._is_released:
                raise UsageError(RELEASED)
            return work(context)

        return self._worker.call(checked)

    def plan(self, part: Graph, device: Device, options: CompileOptions) -> CompiledGraph:
        """As compile_graph: what earlier runs have kept is not made again."""
        if self._cache:
            options = replace(options, memory=in_turns(options.memory))
        return kept_graph(self._programs, part, device, options)

    def compile(self, part: Graph, share: float) -> CompiledGraph:
        """Plan a partition that may take this share of the time for compilation.

        Raises UnsupportedError, DeviceError, UsageError for what the cache does not take.
        """
        compile_ = graph_compiler(self._programs, self._cache)
        budget_s = self._options.compile_budget_s * share
        return compile_(part, self.device, replace(self._options, compile_budget_s=budget_s))

    def load(self, compiled: CompiledGraph, subgraph: int = 0) -> LoadedPartition:
        """Have a partition of a subgraph of the file compiled by the driver. Raises DeviceError.

        What its operators keep is what they kept in the program for other shapes that it takes the place of.
        """

        def loaded_in(context: Context) -> LoadedPartition:
            context.programs = self._programs  # those with the same WeightsCache have other ones
            states = [self._states.setdefault(number, GlStates(context)) for number in (_VARIABLES, subgraph)]
            return LoadedPartition(context, compiled, self._shaders, self._wait_type, self._cache, *states)

        loaded = self.call(loaded_in)
        self._loaded.add(loaded)
        return loaded

    def states(self) -> StateValues:
        """What all partitions keep from run to run, by name; waits for the GPU.

        Names of what operators of further subgraphs keep begin with these.
        """
        found = self.call(lambda _: {number: states.read() for number, states in self._states.items()})
        return {_prefix(number) + name: values for number, states in found.items() for name, values in states.items()}

    def restore_states(self, values: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Have them keep what states() gave; what is not named stays. Raises UsageError for others than they have."""
        check_names(values, self.states())

        def restore(_: Context) -> None:
            for number, states in self._states.items():
                own = _prefix(number)
                states.write({name.removeprefix(own): each for name, each in values.items() if name.startswith(own)})

        self.call(restore)

    def reset_states(self) -> None:
        """Have them keep what they did before the first run."""

        def reset(_: Context) -> None:
            for states in self._states.values():
                states.reset()

        self.call(reset)

    def unload(self, loaded: LoadedPartition) -> None:
        """Free a partition; a second call does nothing."""
        if loaded in self._loaded:
            self.call(lambda _: loaded.release())
            self._loaded.remove(loaded)

    def release(self) -> None:
        """Free everything, and the worker. Raises UsageError as the worker's calls do, and frees nothing then."""
        with contextlib.suppress(DeviceError):  # all that was in a context that is gone is gone, too
            self._worker.call(self._release_all)
        self._loaded.clear()
        self._worker.release()

    def _release_all(self, _: Context) -> None:
        self._is_released = True
        while self._loaded:
            self._loaded.pop().release()
        for states in self._states.values():
            states.release()
        self._shaders.release()


def _prefix(subgraph: int) -> str:
    """Of names of what operators of a subgraph keep: further ones may have the same tensors."""
    return f"subgraph {subgraph}: " if subgraph > 0 else ""


def _opened(
    context: Context, precision: Precision, serialization: Serialization | None, weights_cache: ModelSharing | None
) -> _Opened:
    """What all partitions share; with a serialization, programs are kept there instead of the user's cache."""
    driver, serialized = context.programs.driver, None
    if serialization is not None:
        serialized = SerializedFile(serialization.path(*driver, context.limits, code_version()))
    programs = context.programs = ProgramCache(context.gl, driver, serialized)
    device = tuned_device(context, precision)
    lease = weights_cache.lease(context) if weights_cache else None
    return _Opened(
        device, RepackingPrograms(context, lease), context.renderer, context.is_software, programs, serialized
    )

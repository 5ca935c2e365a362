"""Makes networks of a model as OpenGL programs, on a thread of their own or in the caller's context, for OwnWay."""

import numpy as np

from ..delegate.bound_tensors import TensorBinding
from ..delegate.gl_objects import CallersContext
from ..delegate.io_binding import IoBinding
from ..delegate.repacking import RepackingPrograms
from ..delegate.worker import GlWorker, open_worker
from ..model.graph import Graph
from ..model.layout import Precision
from ..plan.compile_options import CompileOptions
from ..programs.model_sharing import graph_compiler
from ..targets.gl.context import Context
from ..targets.gl.gl_states import GlStates
from ..targets.gl.runtime import Program
from ..tuning.store import tuned_device
from .call_errors import no_context
from .own_way import copied
from .run_way import AnyTensor, InterpreterReport


class GlMaker:
    """See NetworkMaker: programs of one context, with one set of variables.

    To be used from any thread, or, in a context of the caller's, from the one that makes this.
    """

    survives_fork = False

    def __init__(self, precision: Precision, context: CallersContext | None = None) -> None:
        """Raises DeviceError where there is no OpenGL 4.3 or ES 3.1."""
        self._worker, self._precision, self._is_callers = open_worker(context), precision, context is not None
        self._states = self._worker.call(GlStates)
        self._shaders = self._worker.call(RepackingPrograms)
        self._renderer = self._worker.call(lambda context: context.renderer)

    def make(self, graph: Graph) -> "GlTensors":
        """See NetworkMaker."""

        def program(context: Context) -> Program:
            device = tuned_device(context, self._precision)
            compiled = graph_compiler(context.programs, None)(graph, device, CompileOptions(precision=self._precision))
            return Program(context, compiled, states=self._states)

        return GlTensors(self._worker, self._worker.call(program), self._shaders, self._is_callers)

    def report(self, operators: int) -> InterpreterReport:
        """See NetworkMaker."""
        return InterpreterReport("gl", self._renderer, operators, {"on the GPU": operators}, 1, self._precision)

    def close(self) -> None:
        """See NetworkMaker: all that is in a context of its own goes with it."""
        if self._is_callers:
            self._worker.call(self._free)
        self._worker.release()

    def _free(self, context: Context) -> None:
        self._states.release()
        self._shaders.release()


class GlTensors:
    """See OwnNetwork. Inputs go up and outputs come back within a run, which is one call of the context's thread."""

    def __init__(self, worker: GlWorker, program: Program, shaders: RepackingPrograms, can_bind: bool) -> None:
        """`can_bind` is whether the context is the caller's, who has objects in it."""
        self._worker, self._program, self._shaders, self._can_bind = worker, program, shaders, can_bind
        self._io: IoBinding | None = None  # once something is bound, or where a GPU repacks tensors faster than NumPy
        self._bound: set[int] = set()
        graph = program.compiled.source
        self._given: dict[int, AnyTensor] = {}
        self._changed = {*graph.inputs}
        self._outputs = tuple(dict.fromkeys(index for index in graph.outputs if index not in graph.inputs))
        for index in (*graph.inputs, *self._outputs):
            tensor = graph.tensors[index]
            self._given[index] = np.zeros(tensor.shape, tensor.dtype)
        self._own_states = [state.name for state in program.compiled.graph.states if not state.is_shared]

    def write(self, index: int, values: AnyTensor) -> None:
        """See OwnNetwork. Infinities and NaN are computed with."""
        self._given[index][...] = values
        self._changed.add(index)

    def read(self, index: int, out: AnyTensor | None = None) -> AnyTensor:
        """See OwnNetwork. An output that is bound is read back from where the program has it."""
        if index in self._bound and index in self._outputs:
            return copied(self._worker.call(lambda _: self._program.read(index)), out)
        return copied(self._given[index], out)

    def view(self, index: int) -> AnyTensor | None:
        """See OwnNetwork."""
        return None

    def bind(self, binding: TensorBinding) -> None:
        """See OwnNetwork."""
        if not self._can_bind:
            raise no_context()
        self._worker.call(lambda _: self._bind(binding))
        self._bound.add(binding.index)

    def unbind(self, index: int | None) -> None:
        """See OwnNetwork."""
        for each in self._bound & ({index} if index is not None else self._bound):
            self._bound.discard(each)
            if each in self._program.compiled.graph.inputs:
                self._changed.add(each)
            if self._io:
                self._io.unbind(each)

    def run(self) -> None:
        """See OwnNetwork; waits for the GPU, unless all outputs are bound."""
        self._worker.call(self._run)

    def reset(self) -> None:
        """See OwnNetwork."""
        if self._own_states:
            self._worker.call(lambda _: self._program.reset_states(self._own_states))

    def close(self) -> None:
        """See OwnNetwork."""
        self._worker.call(self._free)

    def _free(self, context: Context) -> None:
        if self._io:
            self._io.release()
        self._program.release()

    def _bind(self, binding: TensorBinding) -> None:
        io = self._io = self._io or self._new_io()
        bind = io.bind_output if binding.is_output else io.bind_input
        bind(binding.index, binding.given, binding.layout)

    def _new_io(self) -> IoBinding:
        return IoBinding(self._program, self._shaders, "do-not-wait")

    def _run(self, context: Context) -> None:
        if self._io is None and not context.is_software:
            self._io = self._new_io()
        changed, unbound = self._changed - self._bound, [index for index in self._outputs if index not in self._bound]
        if self._io:
            for index in changed:
                self._io.write(index, self._given[index])
            self._changed &= self._bound
            self._io.run()
            if unbound:
                targets = [(index, self._given[index]) for index in unbound]
                self._io.read_all([(index, values.ctypes.data, values.nbytes) for index, values in targets])
        else:
            for index in changed:
                self._program.upload(index, self._given[index])
            self._changed &= self._bound
            self._program.run()
            for index in unbound:
                self._given[index] = self._program.read(index)
        context.check_errors("running a model")

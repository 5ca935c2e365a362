"""Makes networks of a model as OpenGL programs, on a thread of their own, for OwnWay."""

import numpy as np

from ..delegate.worker import ThreadWorker
from ..model.graph import Graph
from ..model.layout import Precision
from ..plan.compile_options import CompileOptions
from ..programs.model_sharing import graph_compiler
from ..targets.gl.context import Context
from ..targets.gl.gl_states import GlStates
from ..targets.gl.runtime import Program
from ..tuning.store import tuned_device
from .own_way import copied
from .run_way import AnyTensor, InterpreterReport


class GlMaker:
    """See NetworkMaker: programs of one context, with one set of variables; to be used from any thread."""

    survives_fork = False

    def __init__(self, precision: Precision) -> None:
        """Raises DeviceError where there is no OpenGL 4.3 or ES 3.1."""
        self._worker, self._precision = ThreadWorker(), precision
        self._states = self._worker.call(GlStates)
        self._renderer = self._worker.call(lambda context: context.renderer)

    def make(self, graph: Graph) -> "GlTensors":
        """See NetworkMaker."""

        def program(context: Context) -> Program:
            device = tuned_device(context, self._precision)
            compiled = graph_compiler(context.programs, None)(graph, device, CompileOptions(precision=self._precision))
            return Program(context, compiled, states=self._states)

        return GlTensors(self._worker, self._worker.call(program))

    def report(self, operators: int) -> InterpreterReport:
        """See NetworkMaker."""
        return InterpreterReport("gl", self._renderer, operators, {"on the GPU": operators}, 1, self._precision)

    def close(self) -> None:
        """See NetworkMaker: all that is in the context goes with it."""
        self._worker.release()


class GlTensors:
    """See OwnNetwork. Inputs go up and outputs come back within a run, which is one call of the context's thread."""

    def __init__(self, worker: ThreadWorker, program: Program) -> None:
        self._worker, self._program = worker, program
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
        """See OwnNetwork."""
        return copied(self._given[index], out)

    def view(self, index: int) -> AnyTensor | None:
        """See OwnNetwork."""
        return None

    def run(self) -> None:
        """See OwnNetwork; waits for the GPU."""
        self._worker.call(self._run)

    def reset(self) -> None:
        """See OwnNetwork."""
        if self._own_states:
            self._worker.call(lambda _: self._program.reset_states(self._own_states))

    def close(self) -> None:
        """See OwnNetwork."""
        self._worker.call(lambda _: self._program.release())

    def _run(self, context: Context) -> None:
        while self._changed:
            index = self._changed.pop()
            self._program.upload(index, self._given[index])
        self._program.run()
        for index in self._outputs:
            self._given[index][...] = self._program.read(index)
        context.check_errors("running a model")

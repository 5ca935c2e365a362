"""The public classes Model and Program: any TensorFlow Lite model, and a program that runs it in OpenGL."""

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, get_args

import moderngl
import numpy.typing as npt

from .app.models.model_loading import load_graph
from .gpu_delegate.base.errors import DeviceError, UnsupportedError, UsageError
from .gpu_delegate.model.feedback import with_feedback
from .gpu_delegate.model.graph import Graph, Hybrid, Tensor
from .gpu_delegate.model.layout import Precision
from .gpu_delegate.plan.compile_options import CompileOptions
from .gpu_delegate.programs.model_sharing import graph_compiler
from .gpu_delegate.programs.weights_cache import WeightsCache, checked_cache
from .gpu_delegate.saving.typed_values import from_bytes, to_bytes
from .gpu_delegate.targets.gl import opengl, runtime
from .gpu_delegate.targets.gl.context import Context, open_context
from .gpu_delegate.targets.gl.runtime import TensorRange
from .gpu_delegate.tuning.store import tuned_device
from .words import LibraryConsole, in_words_of_python, one_of, path_of

__all__ = ["Model", "Program"]

TensorOrName = Tensor | str
TensorValues = npt.NDArray[Any]


@dataclass(frozen=True)
class Model:
    """A TensorFlow Lite model, read and checked: what it takes and gives. Model.load makes one.

        model = texelflow.Model.load("model.tflite")
        for tensor in [*model.inputs, *model.outputs]:
            print(model.name, tensor.name, tensor.shape, tensor.dtype)
        print(model.signature, model.other_signatures)

        model = model.with_feedback({})  # {"state": "new_state"}: an output that the next run takes as its input

    A tensor's shape is BHWC for pictures, its dtype NumPy's name.
    """

    name: str
    inputs: tuple[Tensor, ...]  # each with its name, shape (BHWC for pictures), dtype and quantization
    outputs: tuple[Tensor, ...]
    _graph: Graph = field(repr=False)

    @property
    def signature(self) -> str:
        """The name of the signature that this is; "" where the file gives it none."""
        return self._graph.signature

    @property
    def other_signatures(self) -> tuple[str, ...]:
        """The names of the file's others, which lead to other networks: Model.load(path, signature=name)."""
        return self._graph.other_signatures

    @staticmethod
    def load(
        path_or_name: str | os.PathLike[str],
        quiet: bool = False,
        *,
        signature: str | None = None,
        hybrid: Hybrid = "expanded",
    ) -> "Model":
        """The model of a .tflite file, or of the catalogue, from where it is fetched if need be.

        One of several in a bundle has a path as in a folder: hand_landmarker.task/hand_detector.tflite.

        signature: the name of the one that is meant, of a file that has several; its first subgraph by default.
        hybrid: where floats have weights of bytes, products of floats, or ("reference") those of bytes, rounded as
        TensorFlow Lite's kernels do.
        Progress is shown on stderr where that is a terminal, unless `quiet`. Raises CatalogueError for what
        cannot be found, fetched or read, ModelError for a damaged file, UnsupportedError, UsageError.
        """
        one_of("hybrid", hybrid, get_args(Hybrid))
        with LibraryConsole(quiet).download() as progress:
            graph = replace(load_graph(path_of(path_or_name), progress, signature), hybrid=hybrid)
        return _model_of(graph)

    def with_feedback(self, fed: Mapping[str, str]) -> "Model":
        """The same model, in which outputs are fed back: by an input's name, that of the output that takes its place.

        Before its first run such an input is zeros, or what write() has given it; Program.states() and its like know it
        by the input's name. Raises UsageError for names that there are not, and for another shape or type.
        """
        if not isinstance(fed, Mapping):
            raise UsageError(f"fed is a dictionary of inputs' names to outputs', not {type(fed).__name__}")
        sides = {}
        for what, tensors, names in (("input", self.inputs, fed.keys()), ("output", self.outputs, fed.values())):
            for name in names:
                found = {tensor.index for tensor in tensors if tensor.name == name}
                if len(found) != 1:
                    known = ", ".join(tensor.name for tensor in tensors)
                    raise UsageError(f"{len(found)} tensors are the {what} {name!r}; there are: {known}")
                sides[what, name] = found.pop()
        pairs = {sides["input", one]: sides["output", other] for one, other in fed.items()}
        return replace(self, _graph=with_feedback(self._graph, pairs))

    def __copy__(self) -> "Model":
        return self  # nothing of it ever changes

    def __deepcopy__(self, memo: object) -> "Model":
        return self

    def __reduce__(self) -> tuple[Callable[[bytes], "Model"], tuple[bytes]]:
        """What pickle keeps: the model itself, not where its file is."""
        return _unpickled, (to_bytes(self._graph),)


class Program:
    """A model as OpenGL compute dispatches: write() its inputs, run(), read() its outputs; or let own shaders do so.

        model = texelflow.Model.load("model.tflite")
        with texelflow.Program(model) as program:
            program.write(model.inputs[0], np.zeros(model.inputs[0].shape, np.float32))
            program.run()
            result = program.read(model.outputs[0])  # an array of the output's shape and dtype
            print(program.model.name, program.renderer, program.context)

            kept = program.states()  # of models that keep something from run to run: arrays by name
            program.restore_states(kept)
            program.reset_states()

    In a context of moderngl's own shaders read what the network puts out, and no value passes the CPU:

        import moderngl

        context = moderngl.create_standalone_context(backend="egl", require=430)
        program = texelflow.Program(model, context)
        place = program.input  # or program.range_of(model.inputs[0]); a shader writes there
        program.bind_storage(model.inputs[0], 0)  # buffer 0 of a compute shader, which writes the input
        program.run()
        program.bind_storage(model.outputs[0], 0)
        program.bind_texture(model.outputs[0], 3)  # a samplerBuffer on texture unit 3, which reads the output
        print(program.output.buffer, program.output.offset_bytes, program.range_of(model.outputs[0]).stride)
        program.close()

    Tensors are those of model.inputs and model.outputs, or their names. A name that an input and an output share means
    the input where it is written and bound, the output where it is read; one that several inputs, or several outputs,
    share means none of them, and raises UsageError.

    It belongs to the thread that made it. close(), or the end of a `with` block, frees what it holds.
    """

    def __init__(
        self,
        model: Model,
        context: moderngl.Context | None = None,
        *,
        precision: Precision = "fp32",
        weights_cache: WeightsCache | None = None,
        quiet: bool = False,
    ) -> None:
        """Compile a model; progress is shown on stderr where that is a terminal, unless `quiet`.

        context: one of moderngl's, current in this thread, of OpenGL 4.3 or ES 3.1, which has to be current again
        whenever the program is used; run() changes its shader program and its bindings of textures and storage buffers.
        Without one, a context without a window is opened, which the program makes current when it is used.
        precision: "fp16" halves what lies between the steps of the model; with "fp16-arithmetic" the
        GPU computes with halves, too; where it cannot, that is a DeviceError.
        weights_cache: shares weights and shaders with other instances; those of one thread share the context that is
        opened for them, too.

        Raises UsageError, DeviceError where there is no such OpenGL or it lacks memory, UnsupportedError for a model
        that does not run wholly on the GPU.
        """
        if not isinstance(model, Model):
            raise UsageError(f"model is what Model.load gives, not {type(model).__name__}: Program(Model.load(path))")
        if context is not None and not isinstance(context, moderngl.Context):
            raise UsageError(f"context is a moderngl.Context, not {type(context).__name__}")
        one_of("precision", precision, get_args(Precision))
        cache = checked_cache(weights_cache)
        self.model: Model = model  # that it was made of
        self._thread, self._process = threading.get_ident(), os.getpid()
        with contextlib.ExitStack() as stack, in_words_of_python():
            opener = cache.open_context if cache else open_context
            self._context = stack.enter_context(Context.from_moderngl(context) if context else opener())
            try:
                device = tuned_device(self._context, precision)
                compiling = CompileOptions(precision=precision)
                compiled = graph_compiler(self._context.programs, cache)(model._graph, device, compiling)
            except UnsupportedError as error:
                raise UnsupportedError(f"{error}; texelflow.GpuDelegate runs the rest of a model") from None
            with LibraryConsole(quiet).compilation() as progress:
                self._program = stack.enter_context(
                    runtime.Program(self._context, compiled, progress, weights_cache=cache)
                )
            self._opened: contextlib.ExitStack | None = stack.pop_all()

    @property
    def context(self) -> moderngl.Context:
        """The moderngl context that it runs in: yours, or the one that was opened for it."""
        return self._context.mgl

    @property
    def renderer(self) -> str:
        """The GPU's name as OpenGL tells it."""
        return self._context.renderer

    @property
    def input(self) -> TensorRange:
        """Where the first input lies: a GL buffer, the bytes in it, a buffer texture over them."""
        return self.range_of(self.model.inputs[0])

    @property
    def output(self) -> TensorRange:
        """Where the first output lies."""
        return self.range_of(self.model.outputs[0])

    def range_of(self, tensor: TensorOrName) -> TensorRange:
        """Where an input or output lies. Raises UsageError for other tensors.

        With stride 1 it is a plain array of float32 in the tensor's own order. With stride 4 it is slices of four
        channels, PHWC4: channel c of pixel (y, x) is float ((c / 4 * H + y) * W + x) * 4 + c % 4. H counts the rows of
        a whole batch, whose maps lie below each other; a tensor of fewer dimensions is the last ones of BHWC.
        """
        return self._program_now().range_of(self._tensor(tensor).index)

    def write(self, tensor: TensorOrName, values: TensorValues) -> None:
        """Upload an input: exactly the tensor's type and shape, all finite. Raises UsageError for anything else.

        Values so large that float32 cannot hold what the network makes of them have no defined results (docs/gpu.md).
        """
        self._program_now().write(self._tensor(tensor).index, values)

    def run(self) -> None:
        """One inference, after whatever wrote the input before, and before whatever uses the output after.

        Returns before the GPU is done, and reads nothing back.
        """
        program, gl = self._program_now(), self._context.gl
        gl.glMemoryBarrier(opengl.ALL_BARRIER_BITS)
        program.run()
        gl.glMemoryBarrier(opengl.ALL_BARRIER_BITS)

    def read(self, tensor: TensorOrName) -> TensorValues:
        """An input or output as it is now, in the tensor's type and shape; waits for the GPU."""
        program = self._program_now()
        values = program.read(self._tensor(tensor, reads=True).index)
        self._context.check_errors(f"running {self.model.name}")
        return values

    def states(self) -> dict[str, TensorValues]:
        """What it keeps from run to run, by name: variables, what operators keep, inputs that are fed back."""
        return dict(self._program_now().states())

    def restore_states(self, values: Mapping[str, TensorValues]) -> None:
        """Have it keep what states() gave; what is not named stays. Raises UsageError for others than it has."""
        self._program_now().restore_states(values)

    def reset_states(self) -> None:
        """Have it keep what it did before the first run."""
        self._program_now().reset_states()

    def bind_texture(self, tensor: TensorOrName, unit: int) -> None:
        """Let shaders read it as a `samplerBuffer` on a texture unit, four channels a texel (one, with stride 1).

        Raises DeviceError for more texels than this OpenGL has in a buffer texture: bind_storage has no such limit.
        """
        place = self.range_of(tensor)
        if not place.texture:
            name = self._tensor(tensor).name
            raise DeviceError(f"{name} is too large for a buffer texture of {self.renderer}; use bind_storage")
        self._context.gl.glActiveTexture(opengl.TEXTURE0 + unit)
        self._context.gl.glBindTexture(opengl.TEXTURE_BUFFER, place.texture)

    def bind_storage(self, tensor: TensorOrName, binding: int) -> None:
        """Let shaders read or write it as a `buffer` of std430 at a binding; an input is written so, ahead of run()."""
        place = self.range_of(tensor)
        span = place.buffer, place.offset_bytes, place.size_bytes
        self._context.gl.glBindBufferRange(opengl.SHADER_STORAGE_BUFFER, binding, *span)

    def __reduce__(self) -> str:
        """There are no copies. Raises UsageError."""
        raise UsageError("a Program cannot be copied or pickled; make another one of its model, which can")

    def close(self) -> None:
        """Free everything, and the context if it was opened for this; harmless when repeated."""
        if self._opened is None:
            return
        self._program_now()
        opened, self._opened = self._opened, None
        opened.close()

    def __enter__(self) -> "Program":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = self.renderer if self._opened else "closed"
        return f"<texelflow.Program {self.model.name!r}: {state}>"

    def _program_now(self) -> runtime.Program:
        """The program, with its context current. Raises UsageError on another thread, and after close()."""
        if self._opened is None:
            raise UsageError("this Program is closed; make another one")
        if os.getpid() != self._process:
            raise UsageError("this Program belongs to the process that was forked; make one in each process")
        if threading.get_ident() != self._thread:
            raise UsageError("a Program belongs to the thread that made it; use it there, or make one in each thread")
        self._context.make_current()
        return self._program

    def _tensor(self, wanted: TensorOrName, reads: bool = False) -> Tensor:
        """An input or output, itself or by its name. Raises UsageError."""
        sides = (self.model.outputs, self.model.inputs) if reads else (self.model.inputs, self.model.outputs)
        for side in sides:
            known = {tensor.index: tensor for tensor in side}.values()
            found = [tensor for tensor in known if wanted == tensor.name or _same(wanted, tensor)]
            if len(found) > 1:
                raise UsageError(f"{len(found)} tensors are called {wanted}; give the one of model.inputs or outputs")
            if found:
                return found[0]
        given = wanted.name if isinstance(wanted, Tensor) else repr(wanted)
        named = ", ".join({tensor.index: tensor.name for tensor in (*self.model.inputs, *self.model.outputs)}.values())
        raise UsageError(f"a tensor is one of model.inputs and model.outputs ({named}), not {given}")


def _model_of(graph: Graph) -> Model:
    inputs, outputs = (tuple(graph.tensors[i] for i in indices) for indices in (graph.inputs, graph.outputs))
    return Model(graph.name, inputs, outputs, graph)


def _unpickled(data: bytes) -> Model:
    return _model_of(from_bytes(Graph, data))


def _same(wanted: object, tensor: Tensor) -> bool:
    """Whether it is this tensor, of whichever copy of the model."""
    return isinstance(wanted, Tensor) and (wanted.index, wanted.name) == (tensor.index, tensor.name)

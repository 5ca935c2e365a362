"""The runtime: executes a CompiledGraph on an OpenGL context in one short loop."""

import ctypes
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, takewhile
from types import MappingProxyType, TracebackType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ...base import debug
from ...device.device import Device
from ...device.families import TUNINGS
from ...model.graph import ABSENT, KeptState
from ...model.layout import PHWC4, TEXEL_BYTES, Fetch, MapShape, Precision, Storage, shape_of
from ...model.packing import (
    Float32Array,
    Stored,
    check_values,
    from_memory,
    in_file_type,
    rounded,
    to_kernels,
    to_memory,
)
from ...model.state_values import StateValues, check_names
from ...plan.hazards import STORAGE, TEXTURE_FETCH, UNIFORM
from ..glsl.bindings import FIRST_INPUT_UNIT, WEIGHTS_UNIT
from ..glsl.compiled_graph import CompiledGraph
from . import opengl
from .calls import CallCache
from .context import Context
from .gl_buffers import WayOut, copy_span, device_buffer, write_buffer
from .gl_states import GlStates, StatePlace
from .gl_store import GlLease, GlStore, LeasesWeights
from .half_packing import packs_halves
from .opengl import BufferRange
from .program_log import ProgramLog

CompileProgress = Callable[[int, int], None]  # (kernels ready, kernels in all)

_FORMATS: Mapping[tuple[int, int], int] = MappingProxyType(  # of buffer textures, by lanes and bytes of each
    {(4, 4): opengl.RGBA32F, (4, 2): opengl.RGBA16F, (4, 1): opengl.RGBA8UI, (1, 4): opengl.R32F}
)


def device_of(context: Context, precision: Precision = "fp32") -> Device:
    """The limits of a context's driver, with the tuning of its family. Raises DeviceError where halves are tried."""
    device = Device(context.limits, TUNINGS[context.family.name])
    if precision == "fp32" or not device.tuning.tries_packing:
        return device
    return device.with_limits(packs_halves=packs_halves(context))


@dataclass(frozen=True)
class TensorRange:
    """Where a tensor is stored: a GL buffer, a range of its bytes, and a buffer texture over them.

        with texelflow.Program(texelflow.Model.load("model.tflite")) as program:
            place = program.output
            print(place.buffer, place.offset_bytes, place.size_bytes)  # for glBindBufferRange
            print(place.texture, place.shape, place.stride, place.storage)

    Names are OpenGL's. Where the tensor is too large for a buffer texture, `texture` is 0.
    """

    buffer: int
    offset_bytes: int
    size_bytes: int
    texture: int
    shape: MapShape
    storage: Storage = PHWC4

    @property
    def stride(self) -> Literal[1, 4]:
        """Values per pixel: 4 in PHWC4, 1 in a plain tensor of one channel."""
        return self.storage.lanes


InputPass = Callable[[TensorRange], None]  # a pass that writes the input tensor before the network runs


# As glBindBuffersRange takes them: target, first binding point, their number, buffers, offsets, sizes.
_Blocks = tuple[
    int, int, int, ctypes.Array[ctypes.c_uint], ctypes.Array[ctypes.c_ssize_t], ctypes.Array[ctypes.c_ssize_t]
]


# As glBindTextures takes them: the first unit, their number, textures.
_Textures = tuple[int, int, ctypes.Array[ctypes.c_uint]]


@dataclass(frozen=True)
class _Step:
    """One dispatch with everything that the loop passes to OpenGL."""

    program: int
    grid: tuple[int, int, int]
    barrier: int
    textures: tuple[_Textures, ...]  # of units that the kernel reads, and no others
    blocks: tuple[_Blocks, ...]  # storage blocks, then uniform blocks if there are any


def _blocks(target: int, places: Sequence[TensorRange]) -> _Blocks:
    """Ranges at the first binding points of a target."""
    count = len(places)
    return (
        target, 0, count,
        (ctypes.c_uint * count)(*(place.buffer for place in places)),
        (ctypes.c_ssize_t * count)(*(place.offset_bytes for place in places)),
        (ctypes.c_ssize_t * count)(*(place.size_bytes for place in places)),
    )  # fmt: skip


def _textures(units: Mapping[int, int]) -> Iterator[_Textures]:
    """Textures by unit, those of units in a row together."""
    for first in sorted(unit for unit in units if unit - 1 not in units):
        names = [units[unit] for unit in takewhile(units.__contains__, count(first))]
        yield first, len(names), (ctypes.c_uint * len(names))(*names)


class Program:
    """A compiled model. Use it only on the context's thread; release() or the end of its with-block frees it."""

    def __init__(
        self,
        context: Context,
        compiled: CompiledGraph,
        progress: CompileProgress | None = None,
        input_pass: InputPass | None = None,
        weights_cache: LeasesWeights | None = None,
        states: GlStates | None = None,
        own_states: GlStates | None = None,
    ) -> None:
        """Allocate, upload the weights, compile, and run once, since drivers finish compilation at the first run.

        `input_pass` is the pass that writes the input before each run, if there is one. It runs first here, too:
        drivers specialize code for the current state (Mesa for the samplers that earlier passes have bound) and compile
        again for another state. Weights and GL programs are those of the cache, if one is given, or its own. Variables
        are in `states`, where other programs of the model have them, too, and what operators keep in `own_states`,
        where a program for other shapes goes on with it; or they are in memory of its own.
        Raises DeviceError, UsageError where the cache takes no such instance.
        """
        for done in self._made(context, compiled, input_pass, weights_cache, states, own_states):
            if progress:
                progress(*done)

    @classmethod
    def in_steps(
        cls,
        context: Context,
        compiled: CompiledGraph,
        input_pass: InputPass | None = None,
        weights_cache: LeasesWeights | None = None,
    ) -> "Generator[tuple[int, int], None, Program]":
        """The same kernel by kernel, for callers with other work in between: yields the arguments of CompileProgress.

        The generator returns the program; if it is closed early, it frees what it created. Raises DeviceError.
        """
        program = cls.__new__(cls)
        yield from program._made(context, compiled, input_pass, weights_cache)
        return program

    # Running ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run one inference on the input tensor in memory. Returns before the GPU has finished.

        The caller issues the barriers between what wrote the input or read the output and this, and between this and
        readers of the output. What is in the memory of the output changes before it is there; the input stays, unless
        it was compiled so that all are written before each run (MemoryOptions). Raises UsageError before its
        WeightsCache is finalized.
        """
        self._lease.check_run()
        if self._watch:
            self._watch.run([partial(self._dispatch, step) for step in self._steps], self.repeat, self.read)
            self._keep_states()
            return
        self._calls.run(self._gl.multi_bind, self._dispatch_all)

    def _dispatch_all(self) -> None:
        for step in self._steps:
            self._dispatch(step)
        self._keep_states()

    def _keep_states(self) -> None:
        """Copy what takes the place of states, but for what is there already."""
        if self._copies:
            self._gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)
        for source, target in self._copies:
            copy_span(self.context, source, target)

    def _dispatch(self, step: _Step) -> None:
        gl = self._gl
        if step.barrier:
            gl.glMemoryBarrier(step.barrier)
        self._bind(step)
        gl.glDispatchCompute(*step.grid)

    def _bind(self, step: _Step) -> None:
        gl = self._gl
        gl.glUseProgram(step.program)
        if gl.multi_bind:
            for textures in step.textures:
                gl.glBindTextures(*textures)
            for blocks in step.blocks:
                gl.glBindBuffersRange(*blocks)
            return
        for first, _, names in step.textures:
            for unit, texture in enumerate(names, first):
                gl.glActiveTexture(opengl.TEXTURE0 + unit)
                gl.glBindTexture(opengl.TEXTURE_BUFFER, texture)
        for target, _, _, *columns in step.blocks:
            for binding, (buffer, offset_bytes, size_bytes) in enumerate(zip(*columns, strict=True)):
                gl.glBindBufferRange(target, binding, buffer, offset_bytes, size_bytes)

    def repeat(self, number: int, times: int) -> None:
        """Issue one dispatch several times, each behind its barrier, to measure it. Returns before the GPU is done.

        What it reads stays the same: plans keep that apart from what it writes, and what would replace an input goes
        to a buffer for this alone.
        """
        step, gl = self._repeatable(number), self._gl
        self._bind(step)
        for _ in range(times):
            if step.barrier:
                gl.glMemoryBarrier(step.barrier)
            gl.glDispatchCompute(*step.grid)

    def run_step(self, number: int) -> None:
        """One dispatch, on what its inputs have been given."""
        self._gl.glMemoryBarrier(opengl.ALL_BARRIER_BITS)
        self._dispatch(self._steps[number])

    def _repeatable(self, number: int) -> _Step:
        """The step, with another place for an output that lies where the same step reads."""
        step, kernel = self._steps[number], self.compiled.kernels[number]
        replacing = [k for k, output in enumerate(kernel.outputs) if output in self.compiled.in_place]
        if not replacing:
            return step
        if not self._beside:
            most_bytes = max(self.range_of(output).size_bytes for output in self.compiled.in_place)
            self._beside.append(self._buffer(most_bytes))
        (target, first, count, buffers, offsets, sizes), *others = step.blocks  # outputs come first
        buffers, offsets, sizes = type(buffers)(*buffers), type(offsets)(*offsets), type(sizes)(*sizes)
        for k in replacing:  # one at most
            buffers[k], offsets[k], sizes[k] = self._beside[0], 0, self.range_of(kernel.outputs[k]).size_bytes
        return replace(step, blocks=((target, first, count, buffers, offsets, sizes), *others))

    # States -------------------------------------------------------------------------------------------------------

    def states(self) -> StateValues:
        """What it keeps from run to run, by name, in the types and shapes of the file; waits for the GPU."""
        return {name: values for states in self._all_states for name, values in states.read().items()}

    def restore_states(self, values: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Have it keep what states() gave; what is not named stays. Raises UsageError for others than it has."""
        check_names(values, self.states())
        for states in self._all_states:
            states.write(values)

    def reset_states(self, names: Collection[str] | None = None) -> None:
        """Have it keep what it did before the first run: of all, or of these."""
        for states in self._all_states:
            states.reset(names)

    # Tensors ------------------------------------------------------------------------------------------------------

    def range_of(self, tensor: int) -> TensorRange:
        """Where a tensor is stored. Raises KeyError for one that exists only in registers."""
        return self._ranges[tensor]

    @property
    def input(self) -> TensorRange:
        """Where the model's first input is stored."""
        return self._ranges[self.compiled.graph.inputs[0]]

    @property
    def output(self) -> TensorRange:
        """Where the model's first output is stored."""
        return self._ranges[self.compiled.graph.outputs[0]]

    def write(self, tensor: int, values: npt.NDArray[np.generic]) -> None:
        """Upload a tensor from RAM: exactly its type and shape in the file, all finite. Raises UsageError for others.

        For models that take no pictures, and for checks: it copies values into another order, while frames go up as
        textures.
        """
        self.upload(tensor, check_values(values, self.compiled.tensor(tensor)))

    def upload(self, tensor: int, values: npt.NDArray[np.generic]) -> None:
        """The same of values that are known to be of its type and shape, finite or not."""
        place = self._ranges[tensor]
        self._upload(place, to_kernels(values, self.compiled.tensor(tensor), place.shape))

    def _upload(self, place: TensorRange, values: Float32Array) -> None:
        """Values of as many elements, whatever they are."""
        values_hwc = values.reshape(place.shape.rows, place.shape.width, place.shape.channels)
        self._gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)  # shaders may have written there before
        self._fill(place, to_memory(values_hwc, place.storage))

    def _fill(self, place: TensorRange, stored: Stored) -> None:
        """All of a range, in its own order and type."""
        content = np.ascontiguousarray(stored)
        assert content.nbytes == place.size_bytes
        write_buffer(self.context, place, content.ctypes.data)

    def read(self, tensor: int) -> npt.NDArray[Any]:
        """Read a stored tensor back in its type and shape in the file; waits for the GPU.

        Raises InferenceError as check_run, for outputs.
        """
        if tensor in self.compiled.source.outputs:
            self.check_run()
        return self._stored(tensor)

    def check_run(self) -> None:
        """Raise InferenceError where TensorFlow Lite would have refused the last run, for an index out of range.

        Reads one vector back, and waits for the GPU, where the model has an op that this can happen to; else nothing.
        """
        if faults := self.compiled.graph.faults:
            faults.check(self._stored(faults.tensor))

    def _stored(self, tensor: int) -> npt.NDArray[Any]:
        place, own = self._ranges[tensor], self.compiled.tensor(tensor)
        data = self._way_out.read(place)
        return in_file_type(from_memory(data, place.shape, place.storage), own).reshape(own.shape)

    @property
    def buffer_bytes(self) -> int:
        """Of all GL buffers: its tensors, weights, constants and memory that it may share, what it reads through."""
        return self.tensor_bytes + self._states_here.buffer_bytes + self._lease.buffer_bytes + self._way_out.size_bytes

    # Building -----------------------------------------------------------------------------------------------------

    def _made(
        self,
        context: Context,
        compiled: CompiledGraph,
        input_pass: InputPass | None,
        weights_cache: LeasesWeights | None,
        states: GlStates | None = None,
        own_states: GlStates | None = None,
    ) -> Iterator[tuple[int, int]]:
        """Everything that the constructor does; yields after each kernel."""
        context.check_thread()
        self.context = context
        self.compiled = compiled
        self._gl = context.gl
        self._buffers: list[int] = []
        self._textures: list[int] = []
        self.tensor_bytes = 0  # of GL buffers of its own
        self._lease = self._leased(weights_cache)
        self._steps: list[_Step] = []
        self._beside: list[int] = []  # the buffer for what repeated steps would overwrite
        self._calls = CallCache(context.calls)
        self._way_out = WayOut(context)
        self._states_here = GlStates(context)  # which go with it
        self._shared_states, self._own_states = states or self._states_here, own_states or self._states_here
        self._watch = ProgramLog(debug.level(), context, compiled) if debug.level() else None
        try:
            self._tensors = self._reserve()
            self._ranges = self._allocate()
            self._copies = self._kept()
            self._weights = self._upload_weights()
            self._label()
            if input_pass:
                input_pass(self.input)
            before = [(each, each.as_they_are()) for each in self._all_states]
            yield from self._compile()  # each kernel runs once
            for states, content in before:
                states.put_back(content)
            context.check_errors("compiling the model")
            context.programs.write()
            if weights_cache:  # which has what further instances need
                self.compiled = compiled.without_weights
        except BaseException:
            self.release()
            raise

    def _leased(self, weights_cache: LeasesWeights | None) -> GlLease:
        """The part that it has in a cache, or all of a store of its own."""
        if weights_cache is None:
            return GlLease(GlStore(), self.context)
        return weights_cache.lease(self.context, self.compiled)

    def _reserve(self) -> list[int]:
        """The buffers of the plan: those that others use, too, and its own."""
        plan, graph = self.compiled.plan, self.compiled.graph
        sizes, count = plan.buffer_bytes, plan.shared_buffers
        stored = [max(size_bytes, TEXEL_BYTES) for size_bytes in sizes[:count]]
        states = {plan.places[state.read].buffer: state for state in graph.states if state.read in plan.places}
        own = (
            self._reserved(states[number]).buffer if number in states else self._buffer(size)
            for number, size in enumerate(sizes[count:], count)
        )
        return [*self._lease.arenas(stored), *own]

    def _reserved(self, state: KeptState) -> BufferRange:
        """Where a state lies, stored as the kernels read and write it."""
        tensor = state.read if state.read != ABSENT else state.written
        shape, storage = shape_of(self.compiled.graph.tensors[tensor]), self.compiled.storages[tensor]
        states = self._shared_states if state.is_shared else self._own_states
        return states.reserve(StatePlace(state, shape, storage))

    @property
    def _all_states(self) -> tuple[GlStates, ...]:
        return tuple(dict.fromkeys((self._shared_states, self._own_states)))

    def _kept(self) -> list[tuple[TensorRange, BufferRange]]:
        """What is copied after each run, and where to."""
        found = []
        for state in self.compiled.graph.states:
            if state.written != ABSENT:
                source, target = self._ranges[state.written], self._reserved(state)
                if source.buffer != target.buffer:
                    found.append((source, target))
        return found

    def _buffer(self, size_bytes: int) -> int:
        stored_bytes = max(size_bytes, TEXEL_BYTES)
        self._buffers.append(device_buffer(self.context, stored_bytes))
        self.tensor_bytes += stored_bytes
        self.context.check_errors(f"allocating {size_bytes} bytes for tensors")
        return self._buffers[-1]

    def _texture(self, buffer: int, offset_bytes: int, size_bytes: int, storage: Storage = PHWC4) -> int:
        """A buffer texture over a range, 0 where it has too many texels (the kernels then read an SSBO)."""
        if size_bytes // storage.texel_bytes > self.context.limits.texture_buffer_texels:
            return 0
        name = ctypes.c_uint()
        self._gl.glGenTextures(1, ctypes.byref(name))
        self._textures.append(name.value)
        self._gl.glBindTexture(opengl.TEXTURE_BUFFER, name.value)
        texel_format = _FORMATS[storage.lanes, storage.value_bytes]
        self._gl.glTexBufferRange(opengl.TEXTURE_BUFFER, texel_format, buffer, offset_bytes, size_bytes)
        return name.value

    def _allocate(self) -> dict[int, TensorRange]:
        graph, ranges = self.compiled.graph, {}
        for tensor, where in self.compiled.plan.places.items():
            shape, storage = shape_of(graph.tensors[tensor]), self.compiled.storages[tensor]
            size_bytes = storage.size_bytes(shape)
            buffer, offset = self._tensors[where.buffer], where.offset_bytes
            texture = self._texture(buffer, offset, size_bytes, storage)
            ranges[tensor] = TensorRange(buffer, offset, size_bytes, texture, shape, storage)
        return ranges

    def _upload_weights(self) -> list[TensorRange]:
        """A range for the weights of each kernel, with a texture where one is read, and one for each constant map.

        Constants that are outputs have places among the tensors, where nothing else ever lies.
        """
        kernels, places = self.compiled.kernels, self.compiled.plan.places
        constants = {t: texels for t, texels in self.compiled.constants.items() if t not in places}
        for tensor in self.compiled.constants.keys() & places.keys():
            self._fill(self._ranges[tensor], self.compiled.constants[tensor])
        packed = [rounded(kernel.weights, kernel.weights_storage) for kernel in kernels]
        alignment, name = device_of(self.context).offset_alignment_bytes, f"weights of {self.compiled.source.name}"
        spans = self._lease.weights([*packed, *constants.values()], alignment, name)
        ranges = []
        for kernel, span in zip(kernels, spans, strict=False):
            shape, is_texture = MapShape(1, 1, 1, kernel.weights.size), kernel.weights_fetch == "texture"
            ranges.append(self._viewed(span, shape, kernel.weights_storage, is_texture))
        for tensor, span in zip(constants, spans[len(kernels) :], strict=True):
            self._ranges[tensor] = self._viewed(span, shape_of(self.compiled.graph.tensors[tensor]))
        return ranges

    def _viewed(
        self, span: BufferRange, shape: MapShape, storage: Storage = PHWC4, is_texture: bool = True
    ) -> TensorRange:
        """A range, with the texture over it if it is read through one."""
        buffer, offset, size_bytes = span.buffer, span.offset_bytes, span.size_bytes
        texture = self._texture(buffer, offset, size_bytes, storage) if size_bytes and is_texture else 0
        return TensorRange(buffer, offset, size_bytes, texture, shape, storage)

    def _label(self) -> None:
        """Labels for OpenGL debuggers: the names in the lines that DEBUG prints."""
        label, tensors = self.context.label, self.compiled.graph.tensors
        shared = self.compiled.plan.shared_buffers
        for number, buffer in enumerate(self._tensors):
            whose, which = "programs in turn" if number < shared else self.compiled.source.name, number - shared
            label(opengl.BUFFER, buffer, f"tensors of {whose}{f', {which}' if which > 0 else ''}")
        for tensor, place in self._ranges.items():
            if place.texture:
                label(opengl.TEXTURE, place.texture, tensors[tensor].name)
        for kernel, place in zip(self.compiled.kernels, self._weights, strict=True):
            if place.texture:
                label(opengl.TEXTURE, place.texture, f"weights of {kernel.name}")

    def _compile(self) -> Iterator[tuple[int, int]]:
        """Compile and run kernel by kernel, so that progress is right whichever of the two a driver spends time on."""
        kernels = self.compiled.kernels
        for number, kernel in enumerate(kernels):
            yield number, len(kernels)
            self._steps.append(self._step(number))
            if not self._lease.is_ready(kernel.source):
                self._dispatch(self._steps[-1])
                self._gl.glFinish()
        for kernel in kernels:
            self._lease.has_run(kernel.source)
        yield len(kernels), len(kernels)

    def _step(self, number: int) -> _Step:
        """What the loop passes to OpenGL, with binding points as bindings.py numbers them."""
        kernel, weights = self.compiled.kernels[number], self._weights[number]
        inputs, outputs = ([self._ranges[t] for t in tensors] for tensors in (kernel.inputs, kernel.outputs))

        def read(fetch: Fetch) -> list[TensorRange]:
            return [place for place, each in zip(inputs, kernel.fetches, strict=True) if each == fetch]

        def kept(fetch: Fetch) -> list[TensorRange]:
            return [weights] if weights.size_bytes and kernel.weights_fetch == fetch else []

        units = {
            FIRST_INPUT_UNIT + k: place.texture for k, place in enumerate(inputs) if kernel.fetches[k] == "texture"
        }
        units |= {WEIGHTS_UNIT: weights.texture} if weights.texture else {}
        storage, uniform = [*outputs, *read("storage"), *kept("storage")], [*kept("uniform"), *read("uniform")]
        kinds = ((opengl.SHADER_STORAGE_BUFFER, storage), (opengl.UNIFORM_BUFFER, uniform))
        return _Step(
            self._lease.program(kernel.source, kernel.name), kernel.grid, self._barrier(number),
            tuple(_textures(units)),
            tuple(_blocks(target, places) for target, places in kinds if places),
        )  # fmt: skip

    def _barrier(self, number: int) -> int:
        """Ahead of a dispatch; what others have done with memory that they share comes before the first one."""
        others = STORAGE | TEXTURE_FETCH | UNIFORM if self.compiled.plan.shared_buffers and not number else 0
        return self.compiled.barriers[number] | others

    def release(self) -> None:
        """Free all GL objects; a second call does nothing."""
        self._lease.release()
        self._way_out.release()
        self._states_here.release()
        for names, delete in ((self._buffers, self._gl.glDeleteBuffers), (self._textures, self._gl.glDeleteTextures)):
            if names:
                delete(len(names), (ctypes.c_uint * len(names))(*names))
            names.clear()

    def __enter__(self) -> "Program":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

"""The runtime: a CompiledGraph and a context go in, a Program that runs it in one short loop comes out."""

import ctypes
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType, TracebackType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import debug, opengl
from .bindings import FIRST_INPUT_UNIT, WEIGHTS_UNIT
from .calls import CallCache
from .context import Context, compile_compute
from .device import Device
from .families import TUNINGS
from .gl_buffers import device_buffer, read_buffer, write_buffer
from .half_packing import packs_halves
from .layout import PHWC4, PHWC4_HALVES, PLAIN, TEXEL_BYTES, Fetch, MapShape, Precision, Storage, shape_of
from .memory.records import aligned
from .packing import Float32Array, as_type, check_values, from_memory, rounded, to_memory
from .program import CompiledGraph
from .program_log import ProgramLog

CompileProgress = Callable[[int, int], None]  # (kernels ready, kernels in all)

_FORMATS: Mapping[Storage, int] = MappingProxyType(
    {PHWC4: opengl.RGBA32F, PHWC4_HALVES: opengl.RGBA16F, PLAIN: opengl.R32F}
)


def device_of(context: Context, precision: Precision = "fp32") -> Device:
    """The limits of a context's driver, with the tuning of its family. Raises DeviceError where halves are tried."""
    device = Device(context.limits, TUNINGS[context.family.name])
    if precision == "fp32" or not device.tuning.tries_packing:
        return device
    return device.with_limits(packs_halves=packs_halves(context))


@dataclass(frozen=True)
class TensorRange:
    """Where a tensor is stored: a GL buffer, a range of its bytes, and a buffer texture over them."""

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


@dataclass(frozen=True)
class _Step:
    """One dispatch with everything that the loop passes to OpenGL."""

    program: int
    grid: tuple[int, int, int]
    barrier: int
    textures: tuple[int, int, ctypes.Array[ctypes.c_uint]]  # as glBindTextures takes them
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


class Program:
    """A compiled model. Use it only on the context's thread; release() or the end of its with-block frees it."""

    def __init__(
        self,
        context: Context,
        compiled: CompiledGraph,
        progress: CompileProgress | None = None,
        input_pass: InputPass | None = None,
    ) -> None:
        """Allocate, upload the weights, compile, and run once, since drivers finish compilation at the first run.

        `input_pass` is the pass that writes the input before each run, if there is one. It runs first here, too:
        drivers specialise code for the current state (Mesa for the samplers that earlier passes have bound) and compile
        again for another state. Raises DeviceError.
        """
        for done in self._made(context, compiled, input_pass):
            if progress:
                progress(*done)

    @classmethod
    def in_steps(
        cls, context: Context, compiled: CompiledGraph, input_pass: InputPass | None = None
    ) -> "Generator[tuple[int, int], None, Program]":
        """The same kernel by kernel, for callers with other work in between: yields the arguments of CompileProgress.

        The generator returns the program; if it is closed early, it frees what it created. Raises DeviceError.
        """
        program = cls.__new__(cls)
        yield from program._made(context, compiled, input_pass)
        return program

    # Running ------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run one inference on the input tensor in memory. Returns before the GPU has finished.

        The caller issues the barriers between what wrote the input or read the output and this, and between this and
        readers of the output. What is in the memory of the output changes before it is there; the input stays, unless
        it was compiled so that all are written before each run (MemoryOptions).
        """
        if self._watch:
            self._watch.run([partial(self._dispatch, step) for step in self._steps], self.read)
            return
        self._calls.run(self._gl.multi_bind, self._dispatch_all)

    def _dispatch_all(self) -> None:
        for step in self._steps:
            self._dispatch(step)

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
            gl.glBindTextures(*step.textures)
            for blocks in step.blocks:
                gl.glBindBuffersRange(*blocks)
            return
        first, _, names = step.textures
        for unit, texture in enumerate(names, first):
            if texture:  # what is read in another way has none, nor has every context such textures
                gl.glActiveTexture(opengl.TEXTURE0 + unit)
                gl.glBindTexture(opengl.TEXTURE_BUFFER, texture)
        for target, _, _, *columns in step.blocks:
            for binding, (buffer, offset_bytes, size_bytes) in enumerate(zip(*columns, strict=True)):
                gl.glBindBufferRange(target, binding, buffer, offset_bytes, size_bytes)

    def repeat(self, number: int, times: int) -> None:
        """Issue one dispatch several times, each behind its barrier, to measure it. Returns before the GPU is done.

        What is stored stays the same, because no kernel writes where it reads: plans keep what is alive apart.
        """
        step, gl = self._steps[number], self._gl
        self._bind(step)
        for _ in range(times):
            if step.barrier:
                gl.glMemoryBarrier(step.barrier)
            gl.glDispatchCompute(*step.grid)

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
        self._upload(self._ranges[tensor], check_values(values, self.compiled.tensor(tensor)))

    def _upload(self, place: TensorRange, values: Float32Array) -> None:
        """Values of as many elements, whatever they are."""
        values_hwc = values.reshape(place.shape.rows, place.shape.width, place.shape.channels)
        texels = np.ascontiguousarray(to_memory(values_hwc, place.storage))
        self._gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)  # shaders may have written there before
        write_buffer(self.context, place, texels.ctypes.data)

    def read(self, tensor: int) -> npt.NDArray[Any]:
        """Read a stored tensor back in its type and shape in the file; waits for the GPU."""
        place, own = self._ranges[tensor], self.compiled.tensor(tensor)
        data = read_buffer(self.context, place)
        return as_type(from_memory(data, place.shape, place.storage), own.dtype).reshape(own.shape)

    # Building -----------------------------------------------------------------------------------------------------

    def _made(
        self, context: Context, compiled: CompiledGraph, input_pass: InputPass | None
    ) -> Iterator[tuple[int, int]]:
        """Everything that the constructor does; yields after each kernel."""
        context.check_thread()
        self.context = context
        self.compiled = compiled
        self._gl = context.gl
        self._buffers: list[int] = []
        self._textures: list[int] = []
        self.buffer_bytes = 0  # of all GL buffers: tensors, weights, constants
        self._programs: dict[str, int] = {}
        self._steps: list[_Step] = []
        self._calls = CallCache(context.calls)
        self._watch = ProgramLog(debug.level(), context, compiled) if debug.level() else None
        try:
            self._tensors = [self._buffer(size_bytes, None) for size_bytes in compiled.plan.buffer_bytes]
            self._ranges = self._allocate()
            self._weights = self._upload_weights()
            self._label()
            if input_pass:
                input_pass(self.input)
            yield from self._compile()
            context.check_errors("compiling the model")
            context.programs.write()
        except BaseException:
            self.release()
            raise

    def _buffer(self, size_bytes: int, data: npt.NDArray[Any] | None) -> int:
        stored_bytes = max(size_bytes, TEXEL_BYTES)
        self._buffers.append(device_buffer(self.context, stored_bytes, data))
        self.buffer_bytes += stored_bytes
        if data is not None and data.size:
            self.context.resets.keep(self._buffers[-1], data.data)
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
        self._gl.glTexBufferRange(opengl.TEXTURE_BUFFER, _FORMATS[storage], buffer, offset_bytes, size_bytes)
        return name.value

    def _allocate(self) -> dict[int, TensorRange]:
        graph, ranges = self.compiled.graph, {}
        for tensor, where in self.compiled.plan.places.items():
            shape, storage = shape_of(graph.tensors[tensor]), self.compiled.storages[tensor]
            size_bytes = storage.size_bytes(shape)
            buffer, offset = self._tensors[where.buffer], where.offset_bytes
            texture = self._texture(buffer, offset, size_bytes, storage)
            ranges[tensor] = TensorRange(buffer, offset, size_bytes, texture, shape, storage)
        for tensor, texels in self.compiled.constants.items():
            buffer = self._buffer(texels.nbytes, texels)
            texture = self._texture(buffer, 0, texels.nbytes)
            ranges[tensor] = TensorRange(buffer, 0, texels.nbytes, texture, shape_of(graph.tensors[tensor]))
        return ranges

    def _upload_weights(self) -> list[TensorRange]:
        """One buffer for the weights of all kernels, and a range of it for each, with a texture where one is read."""
        alignment = device_of(self.context).offset_alignment_bytes
        offsets, end = [], 0
        for kernel in self.compiled.kernels:
            offsets.append(end)
            end = aligned(end + kernel.weights_bytes, alignment)
        packed = np.zeros(end, np.uint8)
        for kernel, offset in zip(self.compiled.kernels, offsets, strict=True):
            values = rounded(kernel.weights, kernel.weights_storage)
            packed[offset : offset + kernel.weights_bytes] = values.reshape(-1).view(np.uint8)
        buffer, ranges = self._buffer(packed.nbytes, packed), []
        for kernel, offset in zip(self.compiled.kernels, offsets, strict=True):
            size_bytes, shape = kernel.weights_bytes, MapShape(1, 1, 1, kernel.weights.size)
            is_texture = size_bytes and kernel.weights_fetch == "texture"
            texture = self._texture(buffer, offset, size_bytes, kernel.weights_storage) if is_texture else 0
            ranges.append(TensorRange(buffer, offset, size_bytes, texture, shape, kernel.weights_storage))
        return ranges

    def _label(self) -> None:
        """Labels for OpenGL debuggers: the names in the lines that DEBUG prints."""
        label, tensors = self.context.label, self.compiled.graph.tensors
        for number, buffer in enumerate(self._tensors):
            which = f", {number}" if number else ""
            label(opengl.BUFFER, buffer, f"tensors of {self.compiled.source.name}{which}")
        label(opengl.BUFFER, self._buffers[-1], f"weights of {self.compiled.source.name}")
        for tensor, place in self._ranges.items():
            if place.texture:
                label(opengl.TEXTURE, place.texture, tensors[tensor].name)
            if place.buffer not in self._tensors:
                label(opengl.BUFFER, place.buffer, tensors[tensor].name)
        for kernel, place in zip(self.compiled.kernels, self._weights, strict=True):
            if place.texture:
                label(opengl.TEXTURE, place.texture, f"weights of {kernel.name}")

    def _compile(self) -> Iterator[tuple[int, int]]:
        """Compile and run kernel by kernel, so that progress is right whichever of the two a driver spends time on."""
        kernels = self.compiled.kernels
        for number, kernel in enumerate(kernels):
            yield number, len(kernels)
            if kernel.source not in self._programs:
                self._programs[kernel.source] = compile_compute(self.context, kernel.source, kernel.name)
            self._steps.append(self._step(number))
            self._dispatch(self._steps[-1])
            self._gl.glFinish()
        yield len(kernels), len(kernels)

    def _step(self, number: int) -> _Step:
        """What the loop passes to OpenGL, with binding points as bindings.py numbers them."""
        kernel, weights = self.compiled.kernels[number], self._weights[number]
        inputs, outputs = ([self._ranges[t] for t in tensors] for tensors in (kernel.inputs, kernel.outputs))

        def read(fetch: Fetch) -> list[TensorRange]:
            return [place for place, each in zip(inputs, kernel.fetches, strict=True) if each == fetch]

        def kept(fetch: Fetch) -> list[TensorRange]:
            return [weights] if weights.size_bytes and kernel.weights_fetch == fetch else []

        units = [
            place.texture if fetch == "texture" else 0 for place, fetch in zip(inputs, kernel.fetches, strict=True)
        ]
        first, names = (WEIGHTS_UNIT, [weights.texture, *units]) if weights.texture else (FIRST_INPUT_UNIT, units)
        storage, uniform = [*outputs, *read("storage"), *kept("storage")], [*kept("uniform"), *read("uniform")]
        kinds = ((opengl.SHADER_STORAGE_BUFFER, storage), (opengl.UNIFORM_BUFFER, uniform))
        return _Step(
            self._programs[kernel.source], kernel.grid, self.compiled.barriers[number],
            (first, len(names), (ctypes.c_uint * len(names))(*names)),
            tuple(_blocks(target, places) for target, places in kinds if places),
        )  # fmt: skip

    def release(self) -> None:
        """Free all GL objects; a second call does nothing."""
        for program in self._programs.values():
            self._gl.glDeleteProgram(program)
        for buffer in self._buffers:
            self.context.resets.forget(buffer)
        for names, delete in ((self._buffers, self._gl.glDeleteBuffers), (self._textures, self._gl.glDeleteTextures)):
            if names:
                delete(len(names), (ctypes.c_uint * len(names))(*names))
            names.clear()
        self._programs.clear()

    def __enter__(self) -> "Program":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

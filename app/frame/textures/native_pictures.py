"""Draws pictures by shaders in code made for this CPU: the second of what picture_device.py describes.

What is drawn is gathered as steps, rows of a picture by the code of a shader, and done in one native call, by all
threads and without Python's lock, when somebody asks for what was drawn. Textures are arrays in memory.
"""

import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.base.wording import counted
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange, BufferSpan
from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue, load
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.cutting import StepSize, cut_step, joined_rounds
from texelflow.gpu_delegate.targets.llvm.machine import CpuTarget
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool, default_threads
from texelflow.gpu_delegate.targets.llvm.shader_images import ImageForm, SampleType
from texelflow.gpu_delegate.targets.llvm.shader_steps import (
    ImageWords,
    ReadShader,
    ShaderKernel,
    UniformNumbers,
    shader_code_version,
)
from texelflow.gpu_delegate.targets.llvm.work import StepAddresses, StepRange, WorkTable

from ...picture.picture import Picture, PictureFormat
from ...picture.preprocess import ImageSize
from .frame_planes import KeptPlanes, frame_defines
from .offscreen_target import OffscreenTarget
from .picture_device import PixelRectangle, SampleKind, Target

_FORMS: Mapping[SampleKind, ImageForm] = {
    "bytes": ImageForm("u8", 4),
    "halves": ImageForm("f32", 4, in_planes=True),  # floats are as fast here, and more exact
    "floats": ImageForm("f32", 4, in_planes=True),
    "codes": ImageForm("u8", 1),
    "mask": ImageForm("f32", 1, in_planes=True),
}
_LEAST_COLUMNS = 32  # of a row in memory: vectors are read and written whole
_MOST_SIDE = 1 << 15  # of a picture
_PIXEL_WORK = 60  # of a pixel, in multiply-adds of a network that take as long
_MOST_KEPT = 64  # lists of steps, and tables, before they are made anew
_MOST_KERNELS = 128  # of half a MiB each, before those are forgotten that were not used for the longest time


@dataclass(frozen=True)
class StoredImage:
    """A picture in memory: an array that holds it, and how it lies."""

    array: npt.NDArray[Any]
    form: ImageForm
    words: ImageWords


@dataclass(frozen=True)
class _Step:
    """Some rows of a picture, drawn by a shader; what it reads and writes is kept as long as it is."""

    kernel: ShaderKernel
    words: npt.NDArray[np.uint8]
    first_row: int
    size: ImageSize
    uses: tuple[StoredImage, ...]


_Steps = tuple[_Step, ...]


class NativePictures:
    """A PictureDevice of this machine's CPU. For use by one thread at a time."""

    def __init__(
        self, threads: int | None = None, context: Context | None = None, target: CpuTarget | None = None
    ) -> None:
        """A context shows what was drawn, to a window or an overlay. `target` is this machine's kind of CPU.

        Raises DeviceError where there is no LLVM, or the CPU lacks vectors; UsageError for TEXELFLOW_CPU.
        """
        self.context = context
        self._target, self._version = target or native_target(), shader_code_version()
        self.pool = WorkerPool(self._target, threads or default_threads(), adapts=threads is None)
        self._images: dict[int, StoredImage] = {}  # by name
        self._names = 0
        self._units: dict[int, StoredImage] = {}  # what is bound to texture units
        self._calls = weakref.WeakSet[NativeCalls]()
        self._pending: list[_Steps] = []
        self._recording: list[_Step] | None = None
        self._versions: dict[int, int] = {}  # how often pictures were drawn, by their addresses, for a context
        self._tables: dict[tuple[int, ...], tuple[list[_Steps], WorkTable]] = {}
        self._kernels: dict[tuple[object, ...], ShaderKernel] = {}
        self._scale: NativeDrawing | None = None

    @property
    def renderer(self) -> str:
        """The kind of CPU, and threads."""
        return f"{self._target.name} code on the CPU, {counted(self.pool.threads, 'thread')}"

    @property
    def filters_floats(self) -> bool:
        """All textures are interpolated."""
        return True

    @property
    def gathers(self) -> bool:
        """Nothing of it calls OpenGL."""
        return False

    # Pictures ---------------------------------------------------------------------------------------------------------

    def target(self, size: ImageSize, kind: SampleKind = "bytes") -> "NativeTarget":
        """Black. Raises DeviceError for one that is too large."""
        return NativeTarget(self, size, self._room(size, _FORMS[kind]))

    def image(self, rgba: npt.NDArray[np.uint8], label: str) -> "NativeTarget":
        """A copy of a picture (H, W, 4), which stays as it is."""
        height, width = rgba.shape[:2]
        made = self.target((width, height))
        made.pixels[...] = rgba
        return made

    def planes(self, format: PictureFormat, kept: int = 1, measures: bool = False) -> "NativePlanes":
        """Memory for pictures, into which they are copied."""
        return NativePlanes(self, format, kept)

    def texels(self, count: int, stride: int) -> "NativeTexels":
        """A view of so many texels."""
        return NativeTexels(self, count, stride)

    def drawing(
        self,
        shader: str,
        defines: Mapping[str, ParameterValue],
        samplers: Mapping[str, int],
        label: str,
        over: bool = False,
    ) -> "NativeDrawing":
        """A shader, whose code is made when it first draws. Raises UnsupportedError for one that is not understood."""
        return NativeDrawing(self, ReadShader(load(shader, defines)), samplers, over)

    def bind(self, unit: int, texture: int) -> None:
        """A picture, by its name, to a unit."""
        self._units[unit] = self._images[texture]

    def clear(self, target: Target) -> None:
        """Make all of it 0, at once."""
        self.finish()
        into = self._images[target.texture]
        into.array.fill(0)
        self._note_drawn(into)

    def copy(self, source: Target, target: Target, place: PixelRectangle) -> None:
        """All of a picture into a place of another one, interpolated if that has another size."""
        left, bottom, width, height = place
        if width < _LEAST_COLUMNS:  # vectors would reach into what is beside it
            self._copy_small(source, target, place)
            return
        into = self._images[target.texture]
        offset_bytes = bottom * into.words.row_bytes + left * into.form.element_bytes
        self._draw_scaled(source, into, offset_bytes, (width, height))

    def _draw_scaled(self, source: Target, into: StoredImage, offset_bytes: int, size: ImageSize) -> None:
        self._scale = self._scale or self.drawing("scale.frag", {}, {"picture": 0}, "scale")
        self.bind(0, source.texture)
        self._scale.set_floats("pixels_per_pixel", source.size[0] / size[0], source.size[1] / size[1])
        self._scale.draw_into(into, offset_bytes, size, 0)

    def _copy_small(self, source: Target, target: Target, place: PixelRectangle) -> None:
        left, bottom, width, height = place
        part, into = self.target((width, height)), self._images[target.texture]
        self._draw_scaled(source, self._images[part.texture], 0, (width, height))
        self.finish()
        pixels = into.array[0].reshape(into.words.height, -1, 4)
        pixels[bottom : bottom + height, left : left + width] = part.pixels
        self._note_drawn(into)
        part.release()

    def calls(self) -> "NativeCalls":
        """For what one part draws."""
        made = NativeCalls(self)
        self._calls.add(made)
        return made

    # Buffers ----------------------------------------------------------------------------------------------------------

    def memory(self, size: ImageSize, size_bytes: int) -> BufferRange:
        """Zeros."""
        floats = np.zeros(size_bytes // 4 + _LEAST_COLUMNS, np.float32)
        words = ImageWords(floats.ctypes.data, 0, 0, size_bytes // 4, 1)
        return BufferRange(self.named(StoredImage(floats, ImageForm("f32", 1, is_row=True), words)), 0, size_bytes)

    def write(self, span: BufferSpan, data: npt.NDArray[Any]) -> None:
        """Write contiguous numbers at the beginning of a range, at once."""
        self.finish()
        start = span.offset_bytes // 4
        self._images[span.buffer].array[start : start + data.size] = data.reshape(-1)

    def free(self, span: BufferSpan) -> None:
        """Forget the buffer."""
        self.forget(span.buffer)

    # Names ------------------------------------------------------------------------------------------------------------

    def named(self, image: StoredImage) -> int:
        """A name for a picture, which no other one has had."""
        self._names += 1
        self._images[self._names] = image
        return self._names

    def found(self, name: int) -> StoredImage:
        """The picture of a name. Raises KeyError."""
        return self._images[name]

    def forget(self, name: int) -> None:
        """Forget a picture, and what was recorded or laid out with it."""
        gone = self._images.pop(name, None)
        if gone is not None:
            self._tables = {key: kept for key, kept in self._tables.items() if not _use(kept[0], gone)}
            for calls in self._calls:
                calls.forget(gone)

    def bound(self, unit: int) -> StoredImage:
        """What is bound to a unit. Raises DeviceError if nothing is."""
        if unit not in self._units:
            raise DeviceError(f"a shader reads texture unit {unit}, to which nothing is bound")
        return self._units[unit]

    def show(self, unit: int, image: StoredImage) -> None:
        """Bind a picture that has no name."""
        self._units[unit] = image

    def room(self, shape: tuple[int, ...], form: ImageForm) -> StoredImage:
        """Memory for (height, width, samples) side by side, or a plane for each sample. Raises DeviceError."""
        height, width = shape[:2]
        if max(width, height) > _MOST_SIDE:
            raise DeviceError(f"{width}x{height} pixels are too many: at most {_MOST_SIDE} along a side")
        columns, planes = max(width, _LEAST_COLUMNS), form.channels if form.in_planes else 1
        try:
            array = np.zeros((planes, height, columns * form.element_bytes), np.uint8)
        except MemoryError:
            raise DeviceError(f"no memory for {width}x{height} pixels; try a smaller size") from None
        row_bytes, plane_bytes = array.strides[1], array.strides[0]
        return StoredImage(array, form, ImageWords(array.ctypes.data, row_bytes, plane_bytes, width, height))

    def _room(self, size: ImageSize, form: ImageForm) -> StoredImage:
        return self.room((size[1], size[0]), form)

    # Steps ------------------------------------------------------------------------------------------------------------

    def kernel(
        self, shader: ReadShader, forms: Mapping[str, ImageForm], output: ImageForm, over: bool = False
    ) -> ShaderKernel:
        """The code of a shader for such pictures; what was used last is kept. Raises DeviceError."""
        key = shader.text, tuple(forms.items()), output, over
        found = self._kernels.pop(key, None)
        found = found or ShaderKernel(shader, forms, output, self._target, self._version, over=over)
        self._kernels[key] = found
        if len(self._kernels) > _MOST_KERNELS:
            del self._kernels[next(iter(self._kernels))]
        return found

    def add(self, step: _Step) -> None:
        """Have it done with the others."""
        if self._recording is not None:
            self._recording.append(step)
        else:
            self._pending.append((step,))

    def add_all(self, steps: _Steps) -> None:
        """Have steps done that were recorded."""
        if self._recording is not None:
            self._recording += steps
        elif steps:
            self._pending.append(steps)

    def recorded(self, work: Callable[[], object]) -> _Steps:
        """What is drawn by work."""
        outer, self._recording = self._recording, []
        try:
            work()
            return tuple(self._recording)
        finally:
            self._recording = outer

    def finish(self) -> None:
        """Do all that was drawn so far."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        key = tuple(map(id, pending))
        if key not in self._tables:
            if len(self._tables) >= _MOST_KEPT:
                self._tables.clear()
            self._tables[key] = pending, self._table([step for steps in pending for step in steps])
        self.pool.run(self._tables[key][1])
        self._note_drawn(*(step.uses[0] for steps in pending for step in steps))

    def _note_drawn(self, *images: StoredImage) -> None:
        """Where there is a context, count that pictures are others now."""
        if self.context:
            for address in {image.words.address for image in images}:
                self._versions[address] = self.version(address) + 1

    def version(self, address: int) -> int:
        """How often the picture at an address was drawn, where there is a context."""
        return self._versions.get(address, 0)

    def _table(self, steps: Sequence[_Step]) -> WorkTable:
        rounds = []
        for number, step in enumerate(steps):
            width, height = step.size
            (*tasks,) = cut_step(number, StepSize(height, 1, width * height * _PIXEL_WORK), self.pool.threads)
            rounds.append(tuple(tuple(_from_row(part, step.first_row) for part in task) for task in tasks))
        addresses = [StepAddresses(step.kernel.address, step.words.ctypes.data, 0) for step in steps]
        return WorkTable(joined_rounds(rounds), addresses)

    def wait(self) -> None:
        """As finish."""
        self.finish()

    def read(self, target: Target) -> npt.NDArray[np.uint8]:
        """A copy of a target of bytes, (H, W, 4), its top row first."""
        self.finish()
        words, array = self._images[target.texture].words, self._images[target.texture].array
        rows = array[0].reshape(words.height, -1, 4)[::-1, : words.width]
        return np.ascontiguousarray(rows)

    def read_red(self, target: Target) -> npt.NDArray[np.float32]:
        """A copy of the red of a target of floats, (H, W), its top row first."""
        self.finish()
        words, array = self._images[target.texture].words, self._images[target.texture].array
        return np.ascontiguousarray(array.view(np.float32)[0, ::-1, : words.width])

    def release(self) -> None:
        """End its threads, and forget all."""
        self.pool.close()
        self._pending.clear()
        for kept in (self._tables, self._images, self._units, self._kernels):
            kept.clear()


def _use(lists: Sequence[_Steps], image: StoredImage) -> bool:
    """Whether any of the steps reads or writes an image."""
    return any(each.array is image.array for steps in lists for step in steps for each in step.uses)


def _from_row(part: StepRange, first_row: int) -> StepRange:
    """A range of a step's rows as rows of the picture."""
    return replace(part, y0=part.y0 + first_row, y1=part.y1 + first_row)


class NativeTarget:
    """A picture in memory, RGBA in bytes or floats, or codes, or a mask. Row 0 is the bottom row."""

    def __init__(self, device: NativePictures, size: ImageSize, image: StoredImage) -> None:
        self.size, self._device, self._image = size, device, image
        self.texture = device.named(image)
        self._copy: OffscreenTarget | None = None
        self._copied = 0  # the version that the copy has

    @property
    def overdrawn(self) -> int:
        """How often something was drawn over the copy that OpenGL has."""
        return self._copy.overdrawn if self._copy else 0

    @property
    def pixels(self) -> npt.NDArray[Any]:
        """All pixels as they are now, a view: (H, W, C) or (H, W) of bytes, (planes, H, W) of floats or bytes."""
        (width, height), form, array = self.size, self._image.form, self._image.array
        rows: npt.NDArray[Any]
        if form.in_planes:
            rows = (array.view(np.float32) if form.sample == "f32" else array)[:, :, :width]
            return rows
        rows = array[0].reshape(height, -1, form.channels)[:, :width]
        return rows if form.channels > 1 else rows[..., 0]

    def finished(self) -> npt.NDArray[Any]:
        """The same behind all that was drawn."""
        self._device.finish()
        return self.pixels

    def uploaded(self) -> OffscreenTarget:
        """A copy of bytes in the device's context, which goes up if it is older. Raises DeviceError."""
        self._device.finish()
        assert self._device.context, "pictures go up where something shows them"
        self._copy = self._copy or OffscreenTarget(self._device.context, self.size)
        version = self._device.version(self._image.words.address)
        if version != self._copied:
            self._put(self._device.context, self._copy)
            self._copied = version
        return self._copy

    def _put(self, context: Context, copy: OffscreenTarget) -> None:
        gl, words = context.gl, self._image.words
        gl.glBindTexture(opengl.TEXTURE_2D, copy.texture)
        gl.glPixelStorei(opengl.UNPACK_ALIGNMENT, 1)
        gl.glPixelStorei(opengl.UNPACK_ROW_LENGTH, words.row_bytes // 4)
        whole = (opengl.TEXTURE_2D, 0, 0, 0, *self.size, opengl.RGBA, opengl.UNSIGNED_BYTE)
        gl.glTexSubImage2D(*whole, words.address)
        gl.glPixelStorei(opengl.UNPACK_ROW_LENGTH, 0)

    def release(self) -> None:
        """Forget it."""
        self._device.forget(self.texture)
        if self._copy:
            self._copy.release()
            self._copy = None


class NativePlanes(KeptPlanes):
    """Copies of pictures of one format, row 0 first; the last `kept` stay."""

    def __init__(self, device: NativePictures, format: PictureFormat, kept: int) -> None:
        """Raises DeviceError for want of memory."""
        self._device = device
        sample: SampleType = "u8" if format.sample_bytes == 1 else "u16"
        self._sets = tuple(
            tuple(
                device.room(shape, ImageForm(sample, shape[2] if len(shape) == 3 else 1))
                for shape in format.plane_shapes
            )
            for _ in range(kept)
        )
        super().__init__(format, [tuple(map(device.named, planes)) for planes in self._sets])
        self._bytes = sum(map(prod, format.plane_shapes)) * format.sample_bytes

    def upload(self, picture: Picture) -> None:
        """Copy a picture. Raises ValueError for planes of another shape."""
        planes, shapes = picture.planes, self.format.plane_shapes
        kind = self.format.sample_bytes
        if [plane.shape for plane in planes] != list(shapes) or any(plane.itemsize != kind for plane in planes):
            raise self._refused(planes)
        self._device.finish()  # what still reads the oldest one
        self._newest = (self._newest + 1) % self.kept
        for plane, room, shape in zip(planes, self._sets[self._newest], shapes, strict=True):
            rows = room.array[0].view(plane.dtype)
            np.copyto(_rows(rows, shape), plane)
        self.uploaded_bytes += self._bytes

    def bind(self, first_unit: int = 0, age: int = 0) -> None:
        """Bind the planes to units. Raises ValueError for a picture that is not kept."""
        for unit, name in enumerate(self.textures_of(age), first_unit):
            self._device.bind(unit, name)

    def defines(self) -> dict[str, ParameterValue]:
        """The parameters of frame.glsl."""
        return frame_defines(self.format, is_apart=False)

    def release(self) -> None:
        """Forget all."""
        for names in self._names:
            for name in names:
                self._device.forget(name)


def _rows(rows: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """The part of padded rows that a plane of a shape takes."""
    if len(shape) == 2:
        return rows[:, : shape[1]]
    return rows.reshape(shape[0], -1, shape[2])[:, : shape[1]]


class NativeTexels:
    """A range of a buffer as texels of `stride` floats."""

    def __init__(self, device: NativePictures, count: int, stride: int) -> None:
        self._device, self._count, self._stride = device, count, stride

    def defines(self) -> dict[str, ParameterValue]:
        """The parameters of texels.glsl."""
        return {"STORED": 0}

    def bind(self, unit: int, shown: BufferSpan) -> None:
        """Let shaders read it."""
        held = self._device.found(shown.buffer)
        words = ImageWords(held.words.address + shown.offset_bytes, 0, 0, self._count, 1)
        self._device.show(unit, StoredImage(held.array, ImageForm("f32", self._stride, is_row=True), words))

    def show(self, shown: BufferSpan) -> None:
        """Nothing to be done ahead."""

    def release(self) -> None:
        """Nothing to free."""


class NativeDrawing:
    """One fragment shader with its uniforms."""

    def __init__(
        self, device: NativePictures, shader: ReadShader, samplers: Mapping[str, int], over: bool = False
    ) -> None:
        self._device, self._shader, self._over = device, shader, over
        self._samplers = {name: samplers[name] for name in shader.samplers}
        self._uniforms: dict[str, UniformNumbers] = {}

    def use(self) -> None:
        """Nothing is shared with other shaders."""

    def set_ints(self, uniform: str, *values: int) -> None:
        self._uniforms[uniform] = values

    def set_floats(self, uniform: str, *values: float) -> None:
        self._uniforms[uniform] = values

    def set_array(self, uniform: str, values: Sequence[float]) -> None:
        self._uniforms[uniform] = tuple(values)

    def draw(self, target: Target, size: ImageSize, first_row: int = 0, first_column: int = 0) -> None:
        """Draw on (width, height) of a target, from that row and column on."""
        into = self._device.found(target.texture)
        self.draw_into(into, 0, size, first_row, first_column)

    def draw_into(
        self, into: StoredImage, offset_bytes: int, size: ImageSize, first_row: int, first_column: int = 0
    ) -> None:
        """The same for a part of a picture, which begins so many bytes behind it."""
        images = {name: self._device.bound(unit) for name, unit in self._samplers.items()}
        forms = {name: each.form for name, each in images.items()}
        kernel = self._device.kernel(self._shader, forms, into.form, self._over)
        start, held = into.words.address + offset_bytes, into.words
        output = ImageWords(start, held.row_bytes, held.plane_bytes, first_column + size[0], size[1])
        words = kernel.words(output, {name: each.words for name, each in images.items()}, self._uniforms, first_column)
        uses = (into, *images.values())
        self._device.add(_Step(kernel, np.frombuffer(words, np.uint8).copy(), first_row, size, uses))

    def release(self) -> None:
        """Nothing to free."""


class NativeCalls:
    """Steps by what they depend on, of one part."""

    def __init__(self, device: NativePictures) -> None:
        self._device = device
        self._lists: dict[Hashable, _Steps] = {}

    def run(self, depends_on: Hashable, work: Callable[[], object], /) -> None:
        """Have work draw, or do once more what it drew for the same."""
        if depends_on not in self._lists:
            if len(self._lists) >= _MOST_KEPT:
                self._lists.clear()
            self._lists[depends_on] = self._device.recorded(work)
        self._device.add_all(self._lists[depends_on])

    def forget(self, image: StoredImage) -> None:
        """Forget the steps that use an image, which nobody asks for any more."""
        self._lists = {key: steps for key, steps in self._lists.items() if not _use([steps], image)}

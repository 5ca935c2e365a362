"""Shaders that convert tensors between PHWC4 and BHWC arrays of floats or bytes."""

from collections.abc import Callable
from dataclasses import dataclass

from ..base.errors import DeviceError
from ..device.limits import Limits
from ..model.graph import Tensor
from ..model.layout import PHWC4, PLAIN, TEXEL_BYTES, MapShape, Storage, ceil_div
from ..model.quantization import BYTE_DTYPES, zero_point_of
from ..targets.gl import opengl, program_log
from ..targets.gl.context import Context
from ..targets.gl.gl_store import GlLease, GlStore
from ..targets.gl.opengl import BufferSpan
from ..targets.gl.runtime import TensorRange
from ..targets.glsl.bindings import FIRST_INPUT_UNIT, KernelInput, KernelOutput, declare
from ..targets.glsl.glsl_kernel import Sides
from ..targets.glsl.roofline import Cost
from ..targets.glsl.shader import ParameterValue, fill, lines_of, load

_MOST_THREADS = 256  # of a work-group, measured on llvmpipe; 64 are 5 % slower there
PIXELS_OF_THREAD = 4  # of pack_bhwc.comp and texture_to_tensor.comp
WORD_BYTES = 4  # bytes are read and written so many at a time


@dataclass(frozen=True)
class ByteFormat:
    """How a tensor of bytes says the steps that kernels compute with: each is a byte less the zero point."""

    is_signed: bool
    zero_point: int

    @property
    def words(self) -> str:
        """The arguments of the functions in bytes.glsl."""
        return f"{str(self.is_signed).lower()}, {self.zero_point}"


def byte_format(tensor: Tensor) -> ByteFormat | None:
    """That of a tensor of the file; None for other types."""
    return ByteFormat(tensor.dtype == "int8", zero_point_of(tensor)) if tensor.dtype in BYTE_DTYPES else None


def is_array(shape: MapShape, storage: Storage) -> bool:
    """Whether a stored tensor begins with its values in the order of BHWC: there is nothing to repack then."""
    return storage == PLAIN or (storage == PHWC4 and (shape.channels == 4 or shape.is_vector))


def array_bytes(shape: MapShape) -> int:
    """The size of a tensor as an array of floats."""
    return shape.pixels * shape.channels * PLAIN.texel_bytes


def staging_bytes(shape: MapShape) -> int:
    """The same in whole texels, as pack_bhwc.comp reads it."""
    return ceil_div(array_bytes(shape), TEXEL_BYTES) * TEXEL_BYTES


def words_bytes(shape: MapShape) -> int:
    """The size of a tensor as an array of bytes, in whole words."""
    return ceil_div(shape.pixels * shape.channels, WORD_BYTES) * WORD_BYTES


def pack_source(threads: int, shape: MapShape, through_storage: bool) -> str:
    """The GLSL from an array to PHWC4; it reads the array as texels of a buffer texture or of an SSBO."""
    return _source("pack_bhwc.comp", threads, shape, through_storage, KernelOutput(PHWC4))


def unpack_source(threads: int, shape: MapShape, through_storage: bool) -> str:
    """The GLSL from PHWC4 to an array; it reads a buffer texture or an SSBO."""
    return _source("unpack_bhwc.comp", threads, shape, through_storage, KernelOutput(PLAIN, lanes=1))


def pack_bytes_source(threads: int, shape: MapShape, form: ByteFormat) -> str:
    """The GLSL from an array of bytes to PHWC4: four pixels, of any number of channels, begin at a whole word."""
    bindings = [
        *lines_of("bytes.glsl"),
        "layout(std430, binding = 1) readonly buffer In0 { uint in0_words[]; };",
        f"#define in0(i) steps_of(in0_words[i], {form.words})",
        *declare([], [KernelOutput(PHWC4)]),
    ]
    return fill(load("pack_bhwc.comp", _defines(threads, shape)), {"bindings": bindings})


def unpack_bytes_source(
    threads: int, shape: MapShape, storage: Storage, form: ByteFormat, through_storage: bool
) -> str:
    """The GLSL from a stored tensor to an array of bytes in whole words."""
    defines = {**_defines(threads, shape), "SIGNED": int(form.is_signed), "ZERO_POINT": form.zero_point}
    bindings = [
        *_tensor_lines(shape, storage, through_storage),
        "layout(std430, binding = 0) writeonly buffer Out0 { uint out0[]; };",
    ]
    return fill(load("unpack_bytes.comp", defines), {"bindings": bindings})


def _tensor_lines(shape: MapShape, storage: Storage, through_storage: bool) -> list[str]:
    """What declares a stored tensor, whose texels or plain values are read as a buffer texture or as an SSBO."""
    if storage == PLAIN and through_storage:
        return [
            "layout(std430, binding = 1) readonly buffer In0 { float in0_texels[]; };",
            "#define in0(i) vec4(in0_texels[i], 0.0, 0.0, 0.0)",
        ]
    source = KernelInput(storage, shape.texels, "storage" if through_storage else "texture")
    *lines, _ = declare([source], [KernelOutput(PLAIN, lanes=1)])  # the output is declared as words instead
    return lines


def _defines(threads: int, shape: MapShape) -> dict[str, ParameterValue]:
    return {"GROUP": threads, "PIXELS": shape.pixels, "CHANNELS": shape.channels}


def _source(file: str, threads: int, shape: MapShape, through_storage: bool, target: KernelOutput) -> str:
    bindings = declare([KernelInput(PHWC4, shape.texels, "storage" if through_storage else "texture")], [target])
    return fill(load(file, _defines(threads, shape)), {"bindings": bindings})


def group_threads(limits: Limits) -> int:
    """Threads of a work-group; OpenGL ES allows fewer than OpenGL."""
    return min(_MOST_THREADS, limits.work_group_invocations)


def repacking_grid(threads: int, limits: Limits) -> Sides:
    """Work-groups (x, y, z) for that many threads, in rows where the device allows fewer in x. Raises DeviceError."""
    most_x, most_y, _ = limits.work_group_count
    groups = ceil_div(threads, group_threads(limits))
    across = min(groups, most_x)
    rows = ceil_div(groups, across)
    if rows > most_y:  # no device of OpenGL 4.3 has arenas of that size
        most = most_x * most_y * group_threads(limits)
        raise DeviceError(f"a tensor of {threads} texels is too large: this device allows {most}")
    return across, rows, 1


class RepackingPrograms:
    """The compiled shaders of one context, shared by all tensors of equal shape, and a sampler for textures.

    release() deletes them.
    """

    def __init__(self, context: Context, lease: GlLease | None = None) -> None:
        """`lease` is a part in a store that has such shaders already, perhaps; it is given back with them."""
        self.context, self._lease = context, lease or GlLease(GlStore(), context)
        self._programs: dict[tuple[object, ...], int] = {}
        self._sampler = 0

    def get(self, name: str, make: Callable[..., str], *parameters: object) -> int:
        """The program of the source that `make` makes of the threads of a work-group and some parameters.

        It is made the first time that they are given.

        Raises DeviceError.
        """
        key = name, *parameters
        if key not in self._programs:
            source = make(group_threads(self.context.limits), *parameters)
            self._programs[key] = self._lease.program(source, name)
        return self._programs[key]

    def sampler(self) -> int:
        """With it every texture is complete, whatever its own filter: mipmaps that it lacks are not asked for."""
        if not self._sampler:
            self._sampler = self.context.gl.generate("Samplers")
            for name in (opengl.TEXTURE_MIN_FILTER, opengl.TEXTURE_MAG_FILTER):
                self.context.gl.glSamplerParameteri(self._sampler, name, opengl.NEAREST)
        return self._sampler

    def release(self) -> None:
        """Delete all; a second call does nothing."""
        self._programs.clear()
        self._lease.release()
        sampler, self._sampler = self._sampler, 0
        if sampler:
            self.context.gl.delete("Samplers", sampler)


def pack(shaders: RepackingPrograms, shape: MapShape, source: BufferSpan, texture: int, target: BufferSpan) -> None:
    """Issue the dispatch from an array to PHWC4; `texture` shows the array's texels, if it is not 0.

    Barriers are the caller's. Raises DeviceError.
    """
    shaders.context.gl.glUseProgram(shaders.get("pack_bhwc", pack_source, shape, not texture))
    _bind(shaders.context, source, texture, target)
    threads = ceil_div(shape.pixels, PIXELS_OF_THREAD) * shape.slices
    dispatch_threads(shaders.context, "pack_bhwc", threads, Cost(0, source.size_bytes, target.size_bytes))


def unpack(shaders: RepackingPrograms, shape: MapShape, source: BufferSpan, texture: int, target: BufferSpan) -> None:
    """The same from PHWC4 to an array."""
    shaders.context.gl.glUseProgram(shaders.get("unpack_bhwc", unpack_source, shape, not texture))
    _bind(shaders.context, source, texture, target)
    dispatch_threads(shaders.context, "unpack_bhwc", shape.texels, Cost(0, source.size_bytes, target.size_bytes))


def pack_bytes(
    shaders: RepackingPrograms, shape: MapShape, form: ByteFormat, source: BufferSpan, target: BufferSpan
) -> None:
    """Issue the dispatch from an array of bytes, in whole words, to PHWC4; barriers are the caller's."""
    shaders.context.gl.glUseProgram(shaders.get("pack_bytes", pack_bytes_source, shape, form))
    _bind(shaders.context, source, 0, target)
    threads = ceil_div(shape.pixels, PIXELS_OF_THREAD) * shape.slices
    dispatch_threads(shaders.context, "pack_bytes", threads, Cost(0, source.size_bytes, target.size_bytes))


def unpack_bytes(shaders: RepackingPrograms, stored: TensorRange, form: ByteFormat, target: BufferSpan) -> None:
    """The same from a stored tensor to an array of bytes in whole words."""
    parameters = stored.shape, stored.storage, form, not stored.texture
    shaders.context.gl.glUseProgram(shaders.get("unpack_bytes", unpack_bytes_source, *parameters))
    _bind(shaders.context, stored, stored.texture, target)
    threads = words_bytes(stored.shape) // WORD_BYTES
    dispatch_threads(shaders.context, "unpack_bytes", threads, Cost(0, stored.size_bytes, target.size_bytes))


def dispatch_threads(context: Context, name: str, threads: int, cost: Cost) -> None:
    """Issue a dispatch of so many threads or a few more, of the program that is in use. Raises DeviceError."""
    grid = repacking_grid(threads, context.limits)
    with program_log.logged_pass(context, name, grid, (group_threads(context.limits), 1, 1), cost):
        context.gl.glDispatchCompute(*grid)


def _bind(context: Context, source: BufferSpan, texture: int, target: BufferSpan) -> None:
    gl = context.gl
    for binding, span in enumerate((target, source)):
        gl.glBindBufferRange(opengl.SHADER_STORAGE_BUFFER, binding, span.buffer, span.offset_bytes, span.size_bytes)
    if texture:
        gl.bind_texture(FIRST_INPUT_UNIT, opengl.TEXTURE_BUFFER, texture)

"""A tensor's shape goes in; the dispatch that copies it between PHWC4 and an array of floats, BHWC, comes out."""

from dataclasses import dataclass

from .. import opengl, program_log
from ..bindings import FIRST_INPUT_UNIT, KernelInput, KernelOutput, declare
from ..context import Context, compile_compute
from ..errors import DeviceError
from ..kernel import Sides
from ..layout import PHWC4, PLAIN, TEXEL_BYTES, MapShape, Storage, ceil_div
from ..limits import Limits
from ..opengl import BufferSpan
from ..roofline import Cost
from ..shader import fill, load

GROUP = 256  # threads of a work-group, measured on llvmpipe; 64 are 5 % slower there
PIXELS_OF_THREAD = 4  # of pack_bhwc.comp


def is_array(shape: MapShape, storage: Storage) -> bool:
    """Whether a stored tensor begins with its values in the order of BHWC: there is nothing to repack then."""
    return storage == PLAIN or (storage == PHWC4 and (shape.channels == 4 or shape.is_vector))


def array_bytes(shape: MapShape) -> int:
    """The size of a tensor as an array of floats."""
    return shape.pixels * shape.channels * PLAIN.texel_bytes


def staging_bytes(shape: MapShape) -> int:
    """The same in whole texels, as pack_bhwc.comp reads it."""
    return ceil_div(array_bytes(shape), TEXEL_BYTES) * TEXEL_BYTES


def repacking_source(name: str, shape: MapShape, through_storage: bool) -> str:
    """The GLSL of pack_bhwc.comp or unpack_bhwc.comp for a shape, which reads a buffer texture or an SSBO."""
    target = KernelOutput(PHWC4) if name == "pack_bhwc" else KernelOutput(PLAIN, lanes=1)
    bindings = declare([KernelInput(PHWC4, through_storage)], [target])
    defines = {"GROUP": GROUP, "PIXELS": shape.pixels, "CHANNELS": shape.channels}
    return fill(load(f"{name}.comp", defines), {"bindings": bindings})


def repacking_grid(threads: int, limits: Limits) -> Sides:
    """Work-groups (x, y, z) for that many threads, in rows where the device allows fewer in x. Raises DeviceError."""
    most_x, most_y, _ = limits.work_group_count
    groups = ceil_div(threads, GROUP)
    across = min(groups, most_x)
    rows = ceil_div(groups, across)
    if rows > most_y:  # no device of OpenGL 4.3 has arenas of that size
        raise DeviceError(f"a tensor of {threads} texels is too large: this device allows {most_x * most_y * GROUP}")
    return across, rows, 1


class RepackingPrograms:
    """The compiled shaders of one context, shared by all tensors of equal shape, and a sampler for textures.

    release() deletes them.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self._programs: dict[str, int] = {}
        self._sampler = 0

    def get(self, name: str, source: str) -> int:
        """The program of a source; compiled if it is the first of its kind. Raises DeviceError."""
        if source not in self._programs:
            self._programs[source] = compile_compute(self.context, source, name)
        return self._programs[source]

    def sampler(self) -> int:
        """With it every texture is complete, whatever its own filter: mipmaps that it lacks are not asked for."""
        if not self._sampler:
            self._sampler = self.context.gl.generate("Samplers")
            for name in (opengl.TEXTURE_MIN_FILTER, opengl.TEXTURE_MAG_FILTER):
                self.context.gl.glSamplerParameteri(self._sampler, name, opengl.NEAREST)
        return self._sampler

    def release(self) -> None:
        """Delete all; a second call does nothing."""
        for program in self._programs.values():
            self.context.gl.glDeleteProgram(program)
        self._programs.clear()
        sampler, self._sampler = self._sampler, 0
        if sampler:
            self.context.gl.delete("Samplers", sampler)


@dataclass(frozen=True)
class Repacking:
    """One dispatch: what it reads through a buffer texture (0: an SSBO), and what it writes."""

    name: str
    program: int
    grid: Sides
    source: BufferSpan
    texture: int
    target: BufferSpan

    def dispatch(self, context: Context) -> None:
        """Issue it; barriers are the caller's."""
        gl = context.gl
        gl.glUseProgram(self.program)
        if self.texture:
            gl.bind_texture(FIRST_INPUT_UNIT, opengl.TEXTURE_BUFFER, self.texture)
        for binding, span in enumerate((self.target, self.source)):
            gl.glBindBufferRange(opengl.SHADER_STORAGE_BUFFER, binding, span.buffer, span.offset_bytes, span.size_bytes)
        cost = Cost(0, self.source.size_bytes, self.target.size_bytes)
        with program_log.logged_pass(context, self.name, self.grid, (GROUP, 1, 1), cost):
            gl.glDispatchCompute(*self.grid)

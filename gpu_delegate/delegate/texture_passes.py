"""A texture goes in, a tensor of its size in a buffer comes out, and the other way: one dispatch each."""

from .. import opengl, program_log
from ..bindings import FIRST_INPUT_UNIT, KernelInput, KernelOutput, declare
from ..context import Context
from ..layout import PHWC4, PLAIN, MapShape, Storage
from ..opengl import BufferSpan
from ..roofline import Cost
from ..runtime import TensorRange
from ..shader import ParameterValue, fill, load
from .repacking import GROUP, RepackingPrograms, repacking_grid

_IMAGE_UNIT = 0


def texture_to_tensor_source(shape: MapShape) -> str:
    """The GLSL that writes a tensor of at most four channels in PHWC4."""
    return fill(load("texture_to_tensor.comp", _defines(shape)), {"bindings": declare([], [KernelOutput(PHWC4)])})


def tensor_to_texture_source(shape: MapShape, storage: Storage, through_storage: bool) -> str:
    """The GLSL that reads such a tensor, from a buffer texture or an SSBO."""
    lines = declare([KernelInput(storage, through_storage)], [])
    if storage == PLAIN and through_storage:
        lines = [
            "layout(std430, binding = 0) readonly buffer In0 { float in0_texels[]; };",
            "#define in0(i) vec4(in0_texels[i], 0.0, 0.0, 0.0)",
        ]
    return fill(load("tensor_to_texture.comp", _defines(shape)), {"bindings": lines})


def _defines(shape: MapShape) -> dict[str, ParameterValue]:
    return {"GROUP": GROUP, "WIDTH": shape.width, "HEIGHT": shape.height, "CHANNELS": shape.channels}


def texture_to_tensor(shaders: RepackingPrograms, texture: int, place: TensorRange) -> None:
    """Issue the dispatch; barriers are the caller's. The padding lanes become zero. Raises DeviceError."""
    gl = shaders.context.gl
    gl.glUseProgram(shaders.get("texture_to_tensor", texture_to_tensor_source(place.shape)))
    gl.bind_texture(FIRST_INPUT_UNIT, opengl.TEXTURE_2D, texture)
    gl.glBindSampler(FIRST_INPUT_UNIT, shaders.sampler())
    _bind_storage(shaders.context, place)
    _dispatch(shaders.context, "texture_to_tensor", place)
    gl.glBindSampler(FIRST_INPUT_UNIT, 0)


def tensor_to_texture(shaders: RepackingPrograms, place: TensorRange, texture: int, image_format: int) -> None:
    """Issue the dispatch; barriers are the caller's. Raises DeviceError."""
    gl = shaders.context.gl
    source = tensor_to_texture_source(place.shape, place.storage, through_storage=not place.texture)
    gl.glUseProgram(shaders.get("tensor_to_texture", source))
    if place.texture:
        gl.bind_texture(FIRST_INPUT_UNIT, opengl.TEXTURE_BUFFER, place.texture)
    else:
        _bind_storage(shaders.context, place)
    gl.glBindImageTexture(_IMAGE_UNIT, texture, 0, 0, 0, opengl.WRITE_ONLY, image_format)
    _dispatch(shaders.context, "tensor_to_texture", place)


def _bind_storage(context: Context, place: BufferSpan) -> None:
    context.gl.glBindBufferRange(opengl.SHADER_STORAGE_BUFFER, 0, place.buffer, place.offset_bytes, place.size_bytes)


def _dispatch(context: Context, name: str, place: TensorRange) -> None:
    grid = repacking_grid(place.shape.pixels, context.limits)
    cost = Cost(0, place.size_bytes, place.size_bytes)
    with program_log.logged_pass(context, name, grid, (GROUP, 1, 1), cost):
        context.gl.glDispatchCompute(*grid)

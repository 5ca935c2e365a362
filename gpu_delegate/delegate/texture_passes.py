"""Shaders that copy a texture into a tensor, and a tensor into a texture."""

from ..model.layout import PHWC4, PLAIN, MapShape, Storage, ceil_div
from ..targets.gl import opengl
from ..targets.gl.context import Context
from ..targets.gl.opengl import BufferSpan
from ..targets.gl.runtime import TensorRange
from ..targets.glsl.bindings import FIRST_INPUT_UNIT, KernelInput, KernelOutput, declare
from ..targets.glsl.roofline import Cost
from ..targets.glsl.shader import ParameterValue, fill, load
from .repacking import PIXELS_OF_THREAD, ByteFormat, RepackingPrograms, dispatch_threads

_IMAGE_UNIT = 0


def texture_to_tensor_source(threads: int, shape: MapShape, form: ByteFormat | None) -> str:
    """The GLSL that writes a tensor of at most four channels in PHWC4, of bytes as steps."""
    defines = {**_defines(threads, shape), **_byte_defines(form)}
    return fill(load("texture_to_tensor.comp", defines), {"bindings": declare([], [KernelOutput(PHWC4)])})


def tensor_to_texture_source(
    threads: int, shape: MapShape, storage: Storage, through_storage: bool, form: ByteFormat | None
) -> str:
    """The GLSL that reads such a tensor, from a buffer texture or an SSBO."""
    lines = declare([KernelInput(storage, shape.texels, "storage" if through_storage else "texture")], [])
    if storage == PLAIN and through_storage:
        lines = [
            "layout(std430, binding = 0) readonly buffer In0 { float in0_texels[]; };",
            "#define in0(i) vec4(in0_texels[i], 0.0, 0.0, 0.0)",
        ]
    defines = {**_defines(threads, shape), **_byte_defines(form)}
    return fill(load("tensor_to_texture.comp", defines), {"bindings": lines})


def _byte_defines(form: ByteFormat | None) -> dict[str, ParameterValue]:
    return {"BYTES": 1, "ZERO_POINT": form.zero_point} if form else {}


def _defines(threads: int, shape: MapShape) -> dict[str, ParameterValue]:
    return {"GROUP": threads, "WIDTH": shape.width, "HEIGHT": shape.height, "CHANNELS": shape.channels}


def texture_to_tensor(
    shaders: RepackingPrograms, texture: int, place: TensorRange, form: ByteFormat | None = None
) -> None:
    """Issue the dispatch; barriers are the caller's. The padding lanes become zero. Raises DeviceError."""
    gl = shaders.context.gl
    gl.glUseProgram(shaders.get("texture_to_tensor", texture_to_tensor_source, place.shape, form))
    gl.bind_texture(FIRST_INPUT_UNIT, opengl.TEXTURE_2D, texture)
    gl.glBindSampler(FIRST_INPUT_UNIT, shaders.sampler())
    _bind_storage(shaders.context, place)
    threads = ceil_div(place.shape.pixels, PIXELS_OF_THREAD)
    dispatch_threads(shaders.context, "texture_to_tensor", threads, Cost(0, place.size_bytes, place.size_bytes))
    gl.glBindSampler(FIRST_INPUT_UNIT, 0)


def tensor_to_texture(
    shaders: RepackingPrograms, place: TensorRange, texture: int, image_format: int, form: ByteFormat | None = None
) -> None:
    """Issue the dispatch; barriers are the caller's. Raises DeviceError."""
    gl = shaders.context.gl
    parameters = place.shape, place.storage, not place.texture, form
    gl.glUseProgram(shaders.get("tensor_to_texture", tensor_to_texture_source, *parameters))
    if place.texture:
        gl.bind_texture(FIRST_INPUT_UNIT, opengl.TEXTURE_BUFFER, place.texture)
    else:
        _bind_storage(shaders.context, place)
    gl.glBindImageTexture(_IMAGE_UNIT, texture, 0, 0, 0, opengl.WRITE_ONLY, image_format)
    cost = Cost(0, place.size_bytes, place.size_bytes)
    dispatch_threads(shaders.context, "tensor_to_texture", place.shape.pixels, cost)


def _bind_storage(context: Context, place: BufferSpan) -> None:
    context.gl.glBindBufferRange(opengl.SHADER_STORAGE_BUFFER, 0, place.buffer, place.offset_bytes, place.size_bytes)

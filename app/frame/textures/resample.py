"""The passes before and behind a network on the GPU: the frame to its input tensor, its output tensor to a mask.

Both are one dispatch each, as app/picture/preprocess.py defines them, and one more for the gain of the light where that
is wanted; none waits or reads anything back.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from texelflow.gpu_delegate.base.errors import TexelflowError
from texelflow.gpu_delegate.device.limits import Limits
from texelflow.gpu_delegate.model.graph import Steps
from texelflow.gpu_delegate.model.layout import ceil_div
from texelflow.gpu_delegate.targets.gl import opengl, program_log
from texelflow.gpu_delegate.targets.gl.calls import CallCache
from texelflow.gpu_delegate.targets.gl.context import Context, compile_compute
from texelflow.gpu_delegate.targets.gl.opengl import BufferSpan
from texelflow.gpu_delegate.targets.glsl.roofline import Cost
from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue, load

from ...picture.preprocess import Fit, ImageSize, Preprocessing, SampledAxis, Sampling, sampling
from .frame_exposure import ExposurePass
from .tensor_view import TensorTexels
from .upload import FrameTextures

_MOST_SPAN = 8  # a window of more than 8 x 8 values for 4 x 4 pixels costs more than reading each pixel's own four
_ACTIVATIONS = {"none": 0, "sigmoid": 1, "softmax": 2}


@dataclass(frozen=True)
class MaskLayout:
    """How the mask lies in the network's output tensor, and what is still to be done to it.

    stride is the floats per pixel: 4 in PHWC4, 1 for a tensor of one channel that is stored plainly. Values are what is
    stored times `scale`: a quantized output is stored in steps. has_own_colors: the three channels before the mask's
    are how much lighter a person is than the frame, and a texel has all four. group: all channels that are the mask
    together, where they are several: their sum if it `adds`, else the greatest.
    """

    size: ImageSize
    channels: int = 1
    channel: int = 0
    stride: Literal[1, 4] = 4
    activation: Literal["none", "sigmoid", "softmax"] = "none"
    scale: float = 1.0
    has_own_colors: bool = False
    group: tuple[int, ...] = ()
    adds: bool = False

    @property
    def texels(self) -> int:
        """How many texels, of `stride` floats, the tensor has."""
        return self.size[0] * self.size[1] * ceil_div(self.channels, self.stride)

    def defines(self) -> dict[str, ParameterValue]:
        """The parameters of mask.glsl."""
        several: dict[str, ParameterValue] = {}
        if self.group:
            several = {"GROUPED": 1, "GROUP": f"int[]({', '.join(map(str, self.group))})", "ADDS": int(self.adds)}
        return {
            **several,
            "MASK_W": self.size[0],
            "MASK_H": self.size[1],
            "STRIDE": self.stride,
            "CHANNELS": self.channels,
            "CHANNEL": self.channel,
            "ACTIVATION": _ACTIVATIONS[self.activation],
            "SCALE": float(self.scale),
        }


class ImageToTensor:
    """The pass that makes the network's input: PHWC4 with one slice, vec4(r, g, b, 0) for each pixel."""

    def __init__(
        self,
        context: Context,
        frame: FrameTextures,
        tensor_size: ImageSize,
        fit: Fit = "stretch",
        value_range: tuple[float, float] = (0, 1),
        preprocessing: Preprocessing = "plain",
        steps: Steps | None = None,
    ) -> None:
        """value_range is what bytes 0 and 255 become, `steps` the whole numbers that the input takes, if no others.

        Raises DeviceError if the shader does not compile.
        """
        plain = preprocessing == "plain"
        self._group = _group(64, 4, context.limits)
        there = sampling(frame.format.upright_size, tensor_size, fit, area=not plain)
        stored = there.stored(frame.format)
        defines = {
            **dict(zip(("GROUP_X", "GROUP_Y"), self._group, strict=True)),
            **dict(zip(("FRAME_W", "FRAME_H"), frame.format.upright_size, strict=True)),
            **dict(zip(("TENSOR_W", "TENSOR_H"), tensor_size, strict=True)),
            **frame.defines(),
            **axis_defines(there),
            "LOW": float(value_range[0]),
            "HIGH": float(value_range[1]),
            **({"WHOLE": 1, "LEAST": float(steps.low), "MOST": float(steps.high)} if steps else {}),
            "BARS": int(not all_inside(there)),
            "PLAIN": int(plain),
            **({} if plain else _area_defines(stored, stored.chroma(frame.format))),
        }
        self.size_bytes = tensor_size[0] * tensor_size[1] * 16
        pixels = sum(int(np.prod(shape)) for shape in frame.format.plane_shapes)
        self._cost = Cost(0, pixels * frame.format.sample_bytes, self.size_bytes)
        self._context, self._gl, self._frame = context, context.gl, frame
        self._calls = CallCache(context.calls)
        self._groups = _groups(tensor_size, self._group)
        self._program = compile_compute(context, load("image_to_tensor.comp", defines), "image_to_tensor")
        try:
            self._exposure = None if plain else ExposurePass(context, frame, stored)
        except TexelflowError:
            self._gl.glDeleteProgram(self._program)
            raise

    @property
    def gain(self) -> int | None:
        """The buffer of the gain of the last frame's light; None where it is left as it is."""
        return self._exposure.buffer if self._exposure else None

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        if self._exposure:
            self._exposure.begin_anew()

    def run(self, tensor: BufferSpan) -> None:
        """Write the tensor from what was uploaded last; what follows sees it, as a buffer texture or as storage."""
        depends_on = self._frame.textures, tensor.buffer, tensor.offset_bytes
        self._calls.run(depends_on, lambda: self._write(tensor))

    def _write(self, tensor: BufferSpan) -> None:
        gl = self._gl
        if self._exposure:
            self._exposure.run()
            gl.glBindBufferBase(opengl.SHADER_STORAGE_BUFFER, 1, self._exposure.buffer)
        gl.glUseProgram(self._program)
        self._frame.bind()
        gl.glBindBufferRange(opengl.SHADER_STORAGE_BUFFER, 0, tensor.buffer, tensor.offset_bytes, tensor.size_bytes)
        gl.glMemoryBarrier(opengl.SHADER_STORAGE_BARRIER_BIT)  # those who read the bytes before must be done
        with program_log.logged_pass(
            self._context, "image_to_tensor", (*self._groups, 1), (*self._group, 1), self._cost
        ):
            gl.glDispatchCompute(*self._groups, 1)
        gl.glMemoryBarrier(opengl.SHADER_STORAGE_BARRIER_BIT | opengl.TEXTURE_FETCH_BARRIER_BIT)

    def release(self) -> None:
        """Delete the program, and what finds the gain."""
        self._gl.glDeleteProgram(self._program)
        if self._exposure:
            self._exposure.release()


class MaskToFrame:
    """The pass that makes a float mask of the frame: `rows` rows of `pitch` floats, both multiples of 4."""

    def __init__(self, context: Context, frame_size: ImageSize, layout: MaskLayout, fit: Fit = "stretch") -> None:
        """Raises DeviceError if the shader does not compile."""
        back = sampling(frame_size, layout.size, fit).inverse()
        self._group = _group(32, 4, context.limits)
        spans = _span(back.x), _span(back.y)
        windowed = max(spans) <= _MOST_SPAN
        defines = {
            **dict(zip(("GROUP_X", "GROUP_Y"), self._group, strict=True)),
            **dict(zip(("FRAME_W", "FRAME_H"), frame_size, strict=True)),
            **dict(zip(("SPAN_X", "SPAN_Y"), spans if windowed else (0, 0), strict=True)),
            **axis_defines(back),
            **layout.defines(),
            "UNSEEN": int(not all_inside(back)),
        }
        self._context, self.frame_size = context, frame_size
        self.pitch, self.rows = (-(-side // 4) * 4 for side in frame_size)
        self.size_bytes = self.pitch * self.rows * 4
        self._gl = context.gl
        self._groups = _groups((self.pitch // 4, self.rows // 4), self._group)
        self._view = TensorTexels(context, layout.texels, layout.stride)
        source = load("mask_to_frame.comp", {**defines, **self._view.defines()})
        self._program = compile_compute(context, source, "mask_to_frame")

    def run(self, tensor: BufferSpan, frame_mask: BufferSpan) -> None:
        """Resample the network's output `tensor` into `frame_mask`, size_bytes long, and let buffer copies see it."""
        gl = self._gl
        gl.glUseProgram(self._program)
        self._view.bind(0, tensor)
        span = (frame_mask.buffer, frame_mask.offset_bytes, frame_mask.size_bytes)
        gl.glBindBufferRange(opengl.SHADER_STORAGE_BUFFER, 0, *span)
        gl.glMemoryBarrier(opengl.SHADER_STORAGE_BARRIER_BIT)  # who read or wrote the mask before must be done
        cost = Cost(0, tensor.size_bytes, self.size_bytes)
        with program_log.logged_pass(self._context, "mask_to_frame", (*self._groups, 1), (*self._group, 1), cost):
            gl.glDispatchCompute(*self._groups, 1)
        gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT | opengl.TEXTURE_FETCH_BARRIER_BIT)

    def release(self) -> None:
        """Delete the program and the view of the tensor."""
        self._view.release()
        self._gl.glDeleteProgram(self._program)


def axis_defines(way: Sampling) -> dict[str, ParameterValue]:
    """The parameters of sampling.glsl's functions for both axes."""
    axes = (("X", way.x), ("Y", way.y))
    return {f"{name}_{key.upper()}": getattr(axis, key) for name, axis in axes for key in ("step", "start", "den")}


def _area_defines(luma: Sampling, chroma: Sampling) -> dict[str, ParameterValue]:
    """The parameters of frame_mean.glsl for what is sampled of the stored planes."""
    defines: dict[str, ParameterValue] = {}
    for plane, way in (("LUMA", luma), ("CHROMA", chroma)):
        pair = way.x, way.y
        begins = [axis.intervals() for axis in pair]
        values: dict[str, tuple[str, list[float]]] = {
            "STEP": ("ivec2", [axis.step for axis in begins]),
            "START": ("ivec2", [axis.start for axis in begins]),
            "DEN": ("ivec2", [axis.den for axis in begins]),
            "LENGTH": ("vec2", [axis.length for axis in pair]),
            "SPAN": ("ivec2", [axis.span() for axis in pair]),
        }
        defines |= {f"{plane}_{name}": f"{kind}({x!r}, {y!r})" for name, (kind, (x, y)) in values.items()}
    return defines


def all_inside(way: Sampling) -> bool:
    """Whether every pixel samples the other image itself."""
    return bool(way.x.inside().all() and way.y.inside().all())


def _span(axis: SampledAxis) -> int:
    """How many pixels of the other image lie under any four in a row that begin at a multiple of 4."""
    first = np.arange(0, axis.count, 4, dtype=np.int64) * axis.step + axis.start
    return int((((first + 3 * axis.step) // axis.den) - first // axis.den).max()) + 2


def _group(width: int, height: int, limits: Limits) -> ImageSize:
    """A work-group of those sides, measured on llvmpipe, or as high as a device allows."""
    return width, min(height, limits.work_group_invocations // width)


def _groups(threads: ImageSize, group: ImageSize) -> ImageSize:
    return -(-threads[0] // group[0]), -(-threads[1] // group[1])

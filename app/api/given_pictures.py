"""Takes a caller's picture of any kind as planes, and makes the same kind of what is drawn.

NumPy arrays, Pillow's images, what speaks DLPack (PyTorch), PyAV's frames, planes of YUV, and textures of OpenGL, which
never come to RAM.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import av
import moderngl
import numpy as np

from .app.capture.conversion import av_frame_of, in_format
from .app.capture.raw import rgba_of
from .app.picture.picture import Picture, PictureFormat, Plane
from .app.picture.video_frame import FrameMaker, orientation_of, picture_format, views
from .frame_arrays import Frame, rgb_of
from .gpu_delegate.base.arrays import ArrayError, as_array
from .gpu_delegate.base.errors import MediaError, UsageError
from .mistake_hints import frame_hint
from .picture_arrays import check_sides

__all__ = ["GivenPicture", "GlTexture", "given_picture"]

GlTexture = tuple[int, int, int]  # name, width, height

_COLORS = "uint8 (H, W, 3) RGB or (H, W, 4) RGBA"
_KINDS = f"{_COLORS}, an image, a tensor, an av.VideoFrame, a tuple of planes of YUV, or a texture"
_PLANES = "planes of a frame are uint8 (Y, U, V) of I420, (Y, UV) of NV12 or (YUYV,) of packed 4:2:2, in their shapes"
_HD = 1280, 720  # from here on pictures that state nothing are BT.709


@dataclass(frozen=True)
class GivenPicture:
    """A picture as it came: `pixels`, RGB or RGBA in any layout, or a `picture` of other planes, or a `texture`.

    `give` makes the caller's kind of RGBA (H, W, 4), upright, contiguous, nobody else's; its alpha is kept if it says
    so. `convert` is a VideoFrame's. is_shared: the caller may change the memory of the planes.
    """

    give: Callable[[Frame, bool], Any]
    pixels: Frame | None = None
    picture: Picture | None = None
    convert: Callable[[], Frame] | None = None
    is_shared: bool = False
    texture: moderngl.Texture | GlTexture | None = None


def given_picture(value: object) -> GivenPicture:
    """What a caller gave. It shares its memory where layouts allow. Raises UsageError for what is no picture."""
    if type(value) is np.ndarray:
        return _of_array(value, _as_array)
    if isinstance(value, moderngl.Texture):
        return _of_texture(value)
    if isinstance(value, av.VideoFrame):
        return _of_av_frame(value)
    if isinstance(value, tuple) and len(value) == 3 and all(type(each) is int for each in value):
        return GivenPicture(_no_ram, texture=value)
    if isinstance(value, tuple | list):
        return _of_planes(value)
    image = getattr(sys.modules.get("PIL.Image"), "Image", None)
    if isinstance(image, type) and isinstance(value, image):
        return _of_image(value)
    if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
        return _of_tensor(value)
    try:
        array = as_array(value, "a frame")
    except ArrayError:
        raise UsageError(f"a frame is {_KINDS}, not {type(value).__name__}{frame_hint(value)}") from None
    return _of_array(array, _as_array)


def _of_texture(texture: moderngl.Texture) -> GivenPicture:
    is_color = texture.components in (3, 4) and texture.dtype in ("f1", "f2", "f4")
    if not is_color or texture.samples:
        has = f"{texture.components} of {texture.dtype}" + (f", {texture.samples} samples" if texture.samples else "")
        raise UsageError(f"a texture has 3 or 4 components of f1, f2 or f4 and one sample a pixel, not {has}")
    return GivenPicture(_no_ram, texture=texture)


def _no_ram(rgba: Frame, keeps_alpha: bool) -> Any:
    raise AssertionError("textures go back as textures")


# Colors ---------------------------------------------------------------------------------------------------------------


def _of_array(array: Any, give: Callable[[Frame, bool, int], Any]) -> GivenPicture:
    """An array (H, W, 3) or (H, W, 4); `give` is told, too, how many channels it has."""
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] not in (3, 4):
        raise UsageError(f"a frame is {_COLORS}, not {array.dtype} {array.shape}{frame_hint(array)}")
    check_sides(array.shape[1], array.shape[0], "a frame")
    return GivenPicture(partial(_with_channels, give, array.shape[2]), array)


def _with_channels(give: Callable[[Frame, bool, int], Any], channels: int, rgba: Frame, keeps_alpha: bool) -> Any:
    return give(rgba, keeps_alpha, channels)


def _as_array(rgba: Frame, keeps_alpha: bool, channels: int) -> Frame:
    """RGBA where there is transparency to keep, or there was alpha; else RGB."""
    if keeps_alpha or channels == 4:
        return rgba
    return rgb_of(rgba)


def _of_image(image: Any) -> GivenPicture:
    if image.mode in ("I", "F", "LAB", "HSV") or image.mode.startswith("I;"):
        raise UsageError(f"a Pillow image of mode {image.mode} is no frame; image.convert('RGB') is one")
    if image.mode not in ("RGB", "RGBA"):
        has_alpha = image.mode in ("LA", "PA", "La", "RGBa") or "transparency" in image.info
        image = image.convert("RGBA" if has_alpha else "RGB")
    from_array = sys.modules["PIL.Image"].fromarray

    def give(rgba: Frame, keeps_alpha: bool, channels: int) -> Any:
        return from_array(_as_array(rgba, keeps_alpha, channels))

    return _of_array(as_array(image, "a frame"), give)


def _of_tensor(tensor: Any) -> GivenPicture:
    """What speaks DLPack: channels last, or first, as PyTorch has them."""
    array = as_array(tensor, "a frame")
    first = array.ndim == 3 and array.shape[2] not in (3, 4) and array.shape[0] in (3, 4)
    package = sys.modules[type(tensor).__module__.partition(".")[0]]
    make = getattr(package, "from_dlpack", None) or getattr(getattr(package, "dlpack", None), "from_dlpack", None)
    if make is None:
        raise UsageError(
            f"{package.__name__} has no from_dlpack, by which frames go back; numpy.asarray makes an array"
        )

    def give(rgba: Frame, keeps_alpha: bool, channels: int) -> Any:
        pixels = _as_array(rgba, keeps_alpha, channels)
        return make(np.ascontiguousarray(pixels.transpose(2, 0, 1)) if first else pixels)

    return _of_array(array.transpose(1, 2, 0) if first else array, give)


# YUV ------------------------------------------------------------------------------------------------------------------


def _of_av_frame(frame: av.VideoFrame) -> GivenPicture:
    check_sides(frame.width, frame.height, "a frame")
    format = picture_format(frame, orientation_of(frame))
    planes = None if format.layout == "rgba" else views(frame, format)
    try:
        made = None if planes else FrameMaker("frame", frame).make(0, 0, 0.0, frame, 0)
    except MediaError:
        raise UsageError(
            f"a frame of the format {frame.format.name} cannot be used; frame.reformat('rgb24') can"
        ) from None
    picture = made.picture if made else Picture(format, planes or ())
    name = frame.format.name

    def give(rgba: Frame, keeps_alpha: bool) -> av.VideoFrame:
        if keeps_alpha:
            given = av.VideoFrame.from_ndarray(rgba, "rgba")
        elif format.layout == "rgba":
            given = av.VideoFrame.from_ndarray(rgba, "rgba").reformat(format=name, threads=1)
        else:
            given = av_frame_of(rgba, format)
        given.pts = frame.pts
        if frame.time_base:
            given.time_base = frame.time_base
        return given

    return GivenPicture(give, picture=picture, convert=made.convert if made else partial(rgba_of, picture))


def _of_planes(planes: Sequence[object]) -> GivenPicture:
    """Planes of 8 bits, in limited range, BT.709 from 1280x720 on and BT.601 below."""
    if len(planes) == 2 and isinstance(planes[0], bool | np.bool_):
        raise UsageError("a frame is not what VideoCapture.read gives, but its second half: ok, frame = capture.read()")
    if len(planes) > 3:
        raise UsageError(f"{_PLANES}, not {len(planes)} of them; numpy.array(frame, numpy.uint8) is one of lists")
    arrays = tuple(as_array(plane, "a plane") for plane in planes)
    format = _format_of(arrays)
    picture = Picture(format, arrays)

    def give(rgba: Frame, keeps_alpha: bool) -> Any:
        if keeps_alpha:
            return rgba
        return type(planes)(np.array(plane) for plane in in_format(rgba, format).planes)  # type: ignore[call-arg]

    return GivenPicture(give, picture=picture, convert=partial(rgba_of, picture), is_shared=True)


def _format_of(planes: Sequence[Plane]) -> PictureFormat:
    """The format that planes of these shapes have. Raises UsageError."""
    shapes = tuple(plane.shape for plane in planes)
    if planes and all(plane.dtype == np.uint8 for plane in planes) and len(shapes[0]) in (2, 3):
        height, width = shapes[0][:2]
        check_sides(width, height, "a frame")
        is_hd = width >= _HD[0] or height >= _HD[1]
        stated = PictureFormat((width, height), matrix="bt709" if is_hd else "bt601", full_range=False, siting="left")
        formats = [replace(stated, layout="yuv", chroma_shift=shift) for shift in ((1, 1), (1, 0), (0, 0))]
        formats += [replace(stated, layout="nv12", chroma_shift=(1, 1))]
        formats += [replace(stated, layout="yuyv", chroma_shift=(1, 0))] if width % 2 == 0 else []
        for format in formats:
            if format.plane_shapes == shapes:
                return format
    told = ", ".join(f"{plane.dtype} {plane.shape}" for plane in planes)
    raise UsageError(f"{_PLANES}, not {told or 'nothing'}")

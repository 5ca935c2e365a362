"""The buffers that cameras would send of a frame of the demo clip, made by FFmpeg."""

from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import av
import numpy as np
import numpy.typing as npt

from texelflow import assets

Rgba = npt.NDArray[np.uint8]
SWS_FLAGS = 0x46004
NAMES = {  # FFmpeg's of V4L2's formats, and how many bytes a pixel's width has in each plane
    "YUYV": ("yuyv422", (2.0,)),
    "UYVY": ("uyvy422", (2.0,)),
    "NV12": ("nv12", (1.0, 1.0)),
    "NV21": ("nv21", (1.0, 1.0)),
    "YU12": ("yuv420p", (1.0, 0.5, 0.5)),
    "YV12": ("yuv420p", (1.0, 0.5, 0.5)),
    "GREY": ("gray", (1.0,)),
    "BGR3": ("bgr24", (3.0,)),
    "RGB3": ("rgb24", (3.0,)),
}


def clip_frame(number: int, size: tuple[int, int]) -> av.VideoFrame:
    """A frame of the demo clip as rgb24 of another size."""
    with av.open(str(Path(assets.__file__).parent / "people.mp4")) as container:
        frame = next(islice(container.decode(video=0), number, None))
        rgb: av.VideoFrame = frame.reformat(*size, "rgb24", interpolation=SWS_FLAGS)
        return rgb


def buffer_of(rgb: av.VideoFrame, pixels: str, padding: int = 0) -> bytes:
    """What a camera would send, BT.601 in limited range, in rows that are longer by `padding` bytes of luma."""
    name, widths = NAMES[pixels]
    levels = 2 if pixels in ("GREY", "BGR3", "RGB3") else 1
    frame = rgb.reformat(
        format=name, src_color_range=2, dst_color_range=levels, dst_colorspace=5, interpolation=SWS_FLAGS
    )
    planes = []
    for plane, width in zip(frame.planes, widths, strict=True):
        rows = np.frombuffer(memoryview(plane), np.uint8)[: plane.height * plane.line_size].reshape(
            plane.height, plane.line_size
        )
        wide = np.pad(rows[:, : int(frame.width * width)], ((0, 0), (0, int(padding * min(width, 1)))))
        planes.append(wide.tobytes())
    order = (0, 2, 1) if pixels == "YV12" else range(len(planes))
    return b"".join(planes[number] for number in order)


def jpeg_of(rgb: av.VideoFrame, name: str = "yuvj422p") -> bytes:
    """A JPEG as cameras make them."""
    encoder: Any = av.CodecContext.create("mjpeg", "w")
    encoder.width, encoder.height, encoder.pix_fmt, encoder.time_base = rgb.width, rgb.height, name, Fraction(1, 30)
    encoder.options = {"qmin": "2", "qmax": "2"}
    frame = rgb.reformat(format=name, dst_color_range=2, dst_colorspace=5, interpolation=SWS_FLAGS)
    frame.pts = 0
    packets: list[Any] = encoder.encode(frame) + encoder.encode(None)
    return bytes(packets[0])

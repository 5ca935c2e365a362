"""Draws frames of a GStreamer pipeline, and hands them on to another one: appsink, texelflow.Pipeline, appsrc.

    apt install python3-gi gir1.2-gst-plugins-base-1.0 gstreamer1.0-plugins-good
    python examples/gstreamer.py [SOURCE] [SINK]

SOURCE and SINK are parts of pipelines as gst-launch-1.0 has them; `v4l2src ! decodebin` and `autovideosink` without.
"""

import sys
from typing import Any

import numpy as np

import texelflow

try:
    import gi

    gi.require_version("Gst", "1.0")
    gi.require_version("GstApp", "1.0")
    from gi.repository import GLib, Gst, GstApp  # noqa: F401 (GstApp gives appsink and appsrc their methods)
except (ImportError, ValueError) as missing:
    sys.exit(f"no GStreamer ({missing}): apt install python3-gi gir1.2-gst-plugins-base-1.0 gstreamer1.0-plugins-good")

RGB = "video/x-raw,format=RGB"


def frame_of(sample: Any) -> tuple[Any, Any]:
    """The picture in a sample, uint8 (H, W, 3), and its time stamps; rows are padded to a multiple of four bytes."""
    shape, buffer = sample.get_caps().get_structure(0), sample.get_buffer()
    width, height = shape.get_value("width"), shape.get_value("height")
    data = np.frombuffer(buffer.extract_dup(0, buffer.get_size()), np.uint8)
    return data.reshape(height, -1)[:, : 3 * width].reshape(height, width, 3), buffer


def buffer_of(picture: Any, like: Any) -> Any:
    """A picture as a buffer with the time stamps of another one."""
    height, width = picture.shape[:2]
    rows = np.zeros((height, -(-3 * width // 4) * 4), np.uint8)
    rows[:, : 3 * width] = picture.reshape(height, -1)
    buffer = Gst.Buffer.new_wrapped(rows.tobytes())
    buffer.pts, buffer.dts, buffer.duration = like.pts, like.dts, like.duration
    return buffer


def main(source: str = "v4l2src ! decodebin", sink: str = "autovideosink") -> None:
    """Until the source ends."""
    taking = Gst.parse_launch(f"{source} ! videoconvert ! {RGB} ! appsink name=frames max-buffers=2")
    giving = Gst.parse_launch(f"appsrc name=pictures is-live=true format=time ! videoconvert ! {sink}")
    frames, pictures = taking.get_by_name("frames"), giving.get_by_name("pictures")
    taking.set_state(Gst.State.PLAYING)
    giving.set_state(Gst.State.PLAYING)
    with texelflow.Pipeline(effect="blur", model="selfie") as camera:
        while (sample := frames.pull_sample()) is not None:
            pictures.set_caps(sample.get_caps())
            frame, times = frame_of(sample)
            picture = camera(frame, time=times.pts / Gst.SECOND)
            pictures.push_buffer(buffer_of(picture, times))
    pictures.end_of_stream()
    giving.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    for each in (taking, giving):
        each.set_state(Gst.State.NULL)


if __name__ == "__main__":
    if len(sys.argv) > 3:
        sys.exit("usage: gstreamer.py [SOURCE] [SINK]")
    Gst.init(None)
    try:
        main(*sys.argv[1:])
    except (RuntimeError, GLib.Error, texelflow.TexelflowError) as error:
        sys.exit(str(error))

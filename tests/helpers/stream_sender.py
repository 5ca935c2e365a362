"""Sends the test pattern to an address in real time, from a thread or as a program of its own.

What begins by connecting to a server has to be a program: PyAV lets no other Python thread run meanwhile.
"""

import sys
import threading
import time
from fractions import Fraction

import av

from texelflow.app.capture.pattern import open_pattern
from texelflow.app.capture.source import CaptureRequest

SIZE, FPS = (320, 240), 60
_KEY_FRAMES = {"g": "6"}


def send_pattern(url: str, form: str, unwanted: threading.Event) -> None:
    """Encode the pattern as MPEG-2, in the container or protocol `form`, until nobody wants it."""
    source = open_pattern(CaptureRequest(SIZE, FPS))
    with av.open(url, "w", format=form) as container:
        stream = container.add_stream("mpeg2video", rate=FPS, options=_KEY_FRAMES)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = *SIZE, "yuv420p", 4_000_000
        index = -1
        while not unwanted.is_set():
            shot = source.read()
            assert shot.convert is not None
            frame = av.VideoFrame.from_ndarray(shot.convert(), "rgba").reformat(format="yuv420p")
            index += 1 + shot.skipped
            frame.pts, frame.time_base = index, Fraction(1, FPS)
            container.mux(stream.encode(frame))


def main(url: str, form: str) -> None:
    """Send as soon as somebody listens there, until this process is ended."""
    while True:
        try:
            send_pattern(url, form, threading.Event())
        except ConnectionRefusedError:
            time.sleep(0.02)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Runs the real program slowed down, and logs each frame that the recorder gets.

Each line has the moment at which the recorder was handed a frame (nanoseconds of the monotonic clock, which all
processes share) and that frame's time stamp in seconds. The last, 'closing', tells that the file is about to be
finished. Lines are written at once and unbuffered, so they outlive the process. The pause before each frame makes the
program as slow as a network that takes so long would.
"""

import os
import sys
from time import monotonic_ns, sleep
from typing import Any

from texelflow.app.__main__ import main
from texelflow.app.media.recorder import FrameTaker
from texelflow.app.media.video_file import VideoFile


def watch(log: str, pause_s: float) -> None:
    """Have every recorder of this process write that log."""
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    write, finish = FrameTaker._write, VideoFile._finish

    def watched_write(recorder: FrameTaker, frame: Any, pts: int, is_i420: bool) -> None:
        sleep(pause_s)
        os.write(handle, f"{monotonic_ns()} {float(pts * recorder._form.time_base)!r}\n".encode())
        write(recorder, frame, pts, is_i420)

    def watched_finish(file: VideoFile, *rest: Any) -> None:
        os.write(handle, b"closing\n")
        finish(file, *rest)

    FrameTaker._write = watched_write  # type: ignore[assignment,method-assign]
    VideoFile._finish = watched_finish  # type: ignore[assignment,method-assign]


if __name__ == "__main__":
    watch(sys.argv[1], float(sys.argv[2]))
    del sys.argv[1:3]
    sys.exit(main())

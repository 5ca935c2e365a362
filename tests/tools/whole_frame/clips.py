"""Makes clips of any size and length out of the embedded one, and counts the frames of videos."""

from itertools import chain, islice, repeat
from pathlib import Path

import av

from texelflow import assets
from texelflow.app.picture.picture import ImageSize

DEMO_CLIP = Path(assets.__file__).parent / "people.mp4"
RATE = 30  # frames a second
_X264 = {"preset": "veryfast", "crf": "22"}


def write_clip(path: Path, size: ImageSize, frames: int) -> None:
    """The embedded clip, again and again until there are so many frames, scaled to (width, height)."""
    width, height = size
    with av.open(DEMO_CLIP) as source, av.open(path, "w") as sink:
        scaled = [frame.reformat(width, height, "yuv420p") for frame in islice(source.decode(video=0), frames)]
        stream = sink.add_stream("libx264", rate=RATE, options=_X264)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for number, frame in enumerate(islice(chain.from_iterable(repeat(scaled)), frames)):
            frame.pts, frame.time_base = number, 1 / stream.average_rate
            sink.mux(stream.encode(frame))
        sink.mux(stream.encode())


def count_frames(path: Path) -> int:
    """How many pictures are in a video; nothing is decoded."""
    with av.open(path) as source:
        return sum(packet.size > 0 for packet in source.demux(video=0))

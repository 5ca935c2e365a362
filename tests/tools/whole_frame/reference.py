"""Decodes a video, converts its frames to RGB and back, and encodes them: what a whole frame takes without a network.

    python -m tests.tools.whole_frame.reference people.mp4 out.mp4

All is as in the script: the decoder's threads, RGB in NumPy, the encoder's settings.
"""

import sys

import av

from tests.tools.whole_frame.script import THREADS, X264


def main() -> None:
    """Frame by frame."""
    video_path, out = sys.argv[1:]
    with av.open(video_path) as source, av.open(out, "w") as sink:
        video = source.streams.video[0]
        video.thread_type = "AUTO"
        stream = sink.add_stream("libx264", rate=video.average_rate, options=X264)
        stream.width, stream.height, stream.pix_fmt = video.width, video.height, "yuv420p"
        stream.codec_context.thread_count = THREADS
        for frame in source.decode(video):
            picture = av.VideoFrame.from_ndarray(frame.to_ndarray(format="rgb24"), format="rgb24")
            picture.pts, picture.time_base = frame.pts, frame.time_base
            sink.mux(stream.encode(picture))
        sink.mux(stream.encode())


if __name__ == "__main__":
    main()

"""Replaces what is behind people in a video with MediaPipe, NumPy and PyAV, as a user would without texelflow.

python script.py people.mp4 --out out.mp4 --model selfie_segmentation.tflite [--refine guided]

It needs mediapipe 0.10.21 with the opencv-contrib-python that comes with it, av and numpy.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import av
import cv2
import numpy as np
import numpy.typing as npt

BACKGROUND = Path(__file__).parents[3] / "assets" / "background.jpg"
X264 = {  # all as texelflow has it, so that the work is the same
    "preset": "veryfast",
    "tune": "zerolatency",
    "crf": "18",
    "g": "15",
    "x264-params": "annexb=0:cpu-independent=1",
}
THREADS = 4
_RADIUS, _EPSILON = 8, 1e-3 * 255**2  # of the guided filter, whose guide is 0 to 255


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options; ends the process with exit code 2 where they are wrong."""
    parser = argparse.ArgumentParser(description="Replaces what is behind people in a video.")
    parser.add_argument("video")
    parser.add_argument("--model", required=True, help="the .tflite file of `texelflow models fetch selfie`")
    parser.add_argument("--background", default=str(BACKGROUND))
    parser.add_argument("--refine", choices=["none", "guided"], default="none")
    end = parser.add_mutually_exclusive_group(required=True)
    end.add_argument("--out")
    end.add_argument("--null", action="store_true", help="write nothing")
    return parser.parse_args(arguments)


def replaced(
    rgb: npt.NDArray[np.uint8], mask: npt.NDArray[np.float32], background: npt.NDArray[np.float32]
) -> npt.NDArray[np.uint8]:
    """Of (H, W, 3) pictures, both 0 to 255, and an (H, W) mask, 1 where people are: the picture."""
    people = mask[..., None]
    return (rgb * people + background * (1 - people)).astype(np.uint8)


def main() -> None:
    """Frame by frame."""
    import mediapipe as mp
    from mediapipe.tasks.python import BaseOptions, vision

    options = parse()
    source = av.open(options.video)
    video = source.streams.video[0]
    video.thread_type = "AUTO"
    size = video.width, video.height
    background = cv2.resize(cv2.imread(options.background), size)[..., ::-1].astype(np.float32)
    segmenter = vision.ImageSegmenter.create_from_options(
        vision.ImageSegmenterOptions(
            BaseOptions(model_asset_path=options.model), vision.RunningMode.VIDEO, output_confidence_masks=True
        )
    )
    sink = None if options.null else av.open(options.out, "w")
    if sink:
        stream = sink.add_stream("libx264", rate=video.average_rate, options=X264)
        stream.width, stream.height, stream.pix_fmt, stream.codec_context.thread_count = *size, "yuv420p", THREADS
    for number, frame in enumerate(source.decode(video)):
        rgb = frame.to_ndarray(format="rgb24")
        image = mp.Image(image_format=mp.ImageFormat.SRGB, data=rgb)
        mask = segmenter.segment_for_video(image, number * 33).confidence_masks[0].numpy_view()
        if options.refine == "guided":
            mask = cv2.ximgproc.guidedFilter(rgb, mask, _RADIUS, _EPSILON)  # type: ignore[attr-defined]
            mask = np.clip(mask, 0, 1)  # the filter goes beyond
        picture = av.VideoFrame.from_ndarray(replaced(rgb, mask, background), format="rgb24")
        picture.pts, picture.time_base = frame.pts, frame.time_base
        if sink:
            sink.mux(stream.encode(picture))
    if sink:
        sink.mux(stream.encode())
        sink.close()


if __name__ == "__main__":
    main()

"""Times MediaPipe on the frame job with the .tflite file of a segmenter, and prints it as JSON.

A program of its own, for any Python that has mediapipe and NumPy: `python peer_mediapipe.py MODEL gpu|cpu RUNS
WIDTHxHEIGHT`. With gpu it is the original TensorFlow Lite GPU delegate over OpenGL ES, with cpu XNNPACK. A line that
begins with `texelflow: ` says why there are no figures.
"""

import json
import sys
import time

import numpy as np

_WARMUP = 5
_FRAMES = 4
_STEP_MS = 33  # of the time stamps that MediaPipe wants to rise


def main(path: str, delegate: str, runs: int, size: str) -> None:
    """Time RGBA frames in RAM to masks of their size in RAM."""
    try:
        import mediapipe
        from mediapipe.tasks import python as tasks
        from mediapipe.tasks.python import vision
    except ImportError as error:
        sys.exit(f"texelflow: mediapipe is not installed: {error}")
    width, height = map(int, size.split("x"))
    frames = np.random.default_rng(0).integers(0, 256, (_FRAMES, height, width, 4), dtype=np.uint8)
    kind = tasks.BaseOptions.Delegate
    options = vision.ImageSegmenterOptions(
        base_options=tasks.BaseOptions(model_asset_path=path, delegate=kind.GPU if delegate == "gpu" else kind.CPU),
        output_confidence_masks=True,
        running_mode=vision.RunningMode.VIDEO,
    )
    start = time.perf_counter()
    segmenter = vision.ImageSegmenter.create_from_options(options)
    init_ms, times_ms = (time.perf_counter() - start) * 1e3, list[float]()
    for step in range(_WARMUP + runs):
        image = mediapipe.Image(image_format=mediapipe.ImageFormat.SRGBA, data=frames[step % _FRAMES])
        start = time.perf_counter()
        result = segmenter.segment_for_video(image, step * _STEP_MS)
        np.array(result.confidence_masks[0].numpy_view())
        times_ms.append((time.perf_counter() - start) * 1e3)
    counted = times_ms[_WARMUP:]
    print(json.dumps({
        "version": mediapipe.__version__, "delegate": delegate, "runs": runs, "init_ms": round(init_ms, 2),
        "median_ms": round(float(np.median(counted)), 3), "min_ms": round(min(counted), 3),
    }))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])

"""Times MediaPipe's solutions: python mediapipe_timer.py CLIP.npy face|hand MOST; each line on stdin is one pass.

It needs mediapipe 0.10.21 and nothing of texelflow. For each pass it prints a line: JSON with the ms of each frame by
the clock, ms of all cores a frame, and how many things were found in the last one.
"""

import json
import sys
import time

import numpy as np


def main() -> None:
    """Passes over the clip, as long as lines come."""
    from mediapipe.python import solutions

    frames, kind, most = np.load(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    if kind == "face":
        solution = solutions.face_mesh.FaceMesh(max_num_faces=most)
    else:
        solution = solutions.hands.Hands(max_num_hands=most, model_complexity=1)
    for _ in sys.stdin:
        times_ms, worked, found = [], time.process_time(), None
        for frame in frames:
            start = time.perf_counter()
            result = solution.process(frame)
            times_ms.append((time.perf_counter() - start) * 1e3)
            found = result.multi_face_landmarks if kind == "face" else result.multi_hand_landmarks
        worked = (time.process_time() - worked) * 1e3 / len(frames)
        print(json.dumps({"times_ms": times_ms, "cpu_ms": worked, "found": len(found or [])}), flush=True)


if __name__ == "__main__":
    main()

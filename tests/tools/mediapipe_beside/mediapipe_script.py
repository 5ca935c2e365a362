"""Finds faces, hands and people in clips with MediaPipe's solutions, and writes what they give, in pixels.

python mediapipe_script.py FOLDER: jobs.json there lists the clips (frames in .npy files) and solutions; found.json is
written. It needs mediapipe 0.10.21 and nothing of texelflow.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np


def made(job: dict[str, Any]) -> tuple[Any, Any]:
    """A solution, and what reads one of its results."""
    from mediapipe.python import solutions

    still, most, name = job["still"], job["most"], job["solution"]
    if name.startswith("face-detection"):
        return solutions.face_detection.FaceDetection(model_selection=int(name.endswith("full"))), of_detections
    if name.startswith("face-landmark"):
        refine = name.endswith("attention")
        mesh = solutions.face_mesh.FaceMesh(static_image_mode=still, max_num_faces=most, refine_landmarks=refine)
        return mesh, of_faces
    if name.startswith("hand-landmark"):
        model = int(name.endswith("full"))
        return solutions.hands.Hands(static_image_mode=still, max_num_hands=most, model_complexity=model), of_hands
    if name == "pose-landmark":
        return solutions.pose.Pose(static_image_mode=still), of_body
    if name == "body-hands":
        return solutions.holistic.Holistic(static_image_mode=still), of_holistic_hands
    raise ValueError(name)


def points_of(landmarks: Any, size: tuple[int, int]) -> dict[str, Any]:
    """Landmarks as they come, in pixels."""
    width, height = size
    points = [[point.x * width, point.y * height, point.z * width] for point in landmarks.landmark]
    return {"points": points, "certainty": [point.visibility for point in landmarks.landmark]}


def of_detections(result: Any, size: tuple[int, int]) -> list[dict[str, Any]]:
    """Boxes and key points."""
    found = []
    for detection in result.detections or []:
        place = detection.location_data
        box = place.relative_bounding_box
        left, top = box.xmin * size[0], box.ymin * size[1]
        corners = [left, top, left + box.width * size[0], top + box.height * size[1]]
        points = [[point.x * size[0], point.y * size[1], 0] for point in place.relative_keypoints]
        found.append({"points": points, "box": corners, "score": detection.score[0]})
    return found


def of_faces(result: Any, size: tuple[int, int]) -> list[dict[str, Any]]:
    """Meshes."""
    return [points_of(face, size) for face in result.multi_face_landmarks or []]


def of_hands(result: Any, size: tuple[int, int]) -> list[dict[str, Any]]:
    """Hands, with the labels of MediaPipe, for which pictures are mirrored."""
    hands, labels = result.multi_hand_landmarks or [], result.multi_handedness or []
    return [
        {**points_of(hand, size), "label": label.classification[0].label.lower()}
        for hand, label in zip(hands, labels)  # noqa: B905
    ]


def of_body(result: Any, size: tuple[int, int]) -> list[dict[str, Any]]:
    """One person."""
    return [points_of(result.pose_landmarks, size)] if result.pose_landmarks else []


def of_holistic_hands(result: Any, size: tuple[int, int]) -> list[dict[str, Any]]:
    """The hands of one person, with the labels of that person's sides."""
    hands = (("left", result.left_hand_landmarks), ("right", result.right_hand_landmarks))
    return [{**points_of(hand, size), "label": label} for label, hand in hands if hand]


def main() -> None:
    """All jobs, one after the other."""
    folder = Path(sys.argv[1])
    found = []
    for job in json.loads((folder / "jobs.json").read_text()):
        solution, read = made(job)
        clips = []
        with solution:
            for clip in job["clips"]:
                frames = np.load(folder / clip)
                size = frames.shape[2], frames.shape[1]
                clips.append([read(solution.process(np.ascontiguousarray(frame)), size) for frame in frames])
        found.append(clips)
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()

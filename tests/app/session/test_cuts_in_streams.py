"""What is remembered ends at a cut, which is found in the frames: those behind it are as those of another stream."""

from itertools import islice
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

import texelflow
from tests.helpers.markers import one_in
from tests.model_files.matte_models import recurrent_matte
from texelflow import assets
from texelflow.app.media.sources import FileSource

Picture = npt.NDArray[np.uint8]
SIZE, CUT, COUNT = (320, 240), 5, 9


def film() -> list[Picture]:
    """People in motion; behind the cut they are upside down, and light is dark."""
    with FileSource(Path(assets.__file__).parent / "people.mp4") as source:
        shown = [cv2.resize(frame.rgba[..., :3], SIZE) for frame in islice(source, 60, 60 + COUNT)]
    return [*shown[:CUT], *(np.ascontiguousarray(255 - frame[::-1]) for frame in shown[CUT:])]


def masks(frames: list[Picture], **settings: Any) -> list[Picture]:
    with texelflow.Pipeline(backend="cpu", effect="mask", **settings) as camera:
        found = [camera(frame) for frame in frames]
        found += [camera.flush()] if settings.get("delay_video") else []
    return found


@one_in(4, ("delay", "recurrent"), [(True, True), (False, True), (False, False), (True, False)])
def test_frames_behind_a_cut_are_as_those_of_another_stream(tmp_path: Path, delay: bool, recurrent: bool) -> None:
    model: dict[str, Any] = {}
    if recurrent:
        (tmp_path / "matte.tflite").write_bytes(recurrent_matte())
        model = {"model": str(tmp_path / "matte.tflite"), "input_range": (0, 1)}
    frames = film()
    found = masks(frames, delay_video=delay, **model)[delay:]
    before, behind = (masks(part, delay_video=delay, **model)[delay:] for part in (frames[:CUT], frames[CUT:]))
    assert all(map(np.array_equal, found, [*before, *behind]))
    assert len({mask.tobytes() for mask in found}) > CUT  # and they differ at all

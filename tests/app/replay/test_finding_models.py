"""Every model of the catalogue that finds things is drawn by replay, on each backend, and told of in lines of JSON."""

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest

import texelflow as library
from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive, one_in
from texelflow import assets
from texelflow.app.models.decoders.skeletons import SKELETONS
from texelflow.app.models.entries import CATALOGUE, COMBINED, SEGMENTERS

pytestmark = pytest.mark.gl

CLIP = str(Path(assets.__file__).parent / "people.mp4")
HANDS = Path(__file__).parents[2] / "data" / "people"
FINDERS = [*(name for name in CATALOGUE if name not in SEGMENTERS), *COMBINED]
# By the beginning of a name: what the clip has of it.
KINDS = {"face": "face", "iris": "eye", "pose": "person", "body": "person"}
FRAME = 104  # two people who look at the camera


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def replayed(
    texelflow: Command, folder: Path, first: int, *options: object, frames: int = 2
) -> list[dict[str, Any]]:  # fmt: skip
    """The lines of some frames whose pictures are in a folder then."""
    lines = folder / "found.jsonl"
    span = "--from", first, "--to", first + frames - 1, "--out", folder, "--json-lines", lines
    result = texelflow("replay", CLIP, *span, "--force", *options)
    assert result.code == 0, result.err
    return [json.loads(line) for line in lines.read_text().splitlines()]


def picture(folder: Path, frame: int) -> npt.NDArray[np.int16]:
    return np.asarray(cv2.imread(str(folder / f"{frame:06}.png")), np.int16)


@one_in(26, ("name", "backend"), [(name, backend) for name in FINDERS for backend in ("cpu", "gl")])
def test_what_is_found_is_drawn_and_told(name: str, backend: str, texelflow: Command, tmp_path: Path) -> None:
    lines = replayed(texelflow, tmp_path, FRAME, "--model", name, "--backend", backend)
    assert [line["index"] for line in lines] == [FRAME, FRAME + 1]
    drawn = picture(tmp_path, FRAME)
    replayed(texelflow, tmp_path, FRAME, "--model", name, "--backend", backend, "--effect", "none")
    marked = np.abs(drawn - picture(tmp_path, FRAME)).max(axis=2) > 24
    found = lines[0]["findings"]
    kind = KINDS.get(name.partition("-")[0])
    assert {each["kind"] for each in found} == ({kind} if kind else set())  # the clip has no hands
    for each in found:
        left, top, right, bottom = (round(side) for side in each["box"])
        assert marked[max(0, top - 4) : bottom + 4, max(0, left - 4) : right + 4].any()
        names = SKELETONS[each["skeleton"]].names
        assert each.get("names", []) == [*names]
    assert marked.mean() < 0.1


@exhaustive
def test_each_picture_of_many_is_as_if_it_were_the_only_one(texelflow: Command, tmp_path: Path) -> None:
    hands = [str(HANDS / f"hand_{name}.jpg") for name in ("point", "fist")]
    model = "--model", "palm-detection-lite", "--backend", "cpu"
    for folder, inputs in (("all", hands), ("one", hands[1:])):
        assert texelflow("replay", *inputs, "--out", tmp_path / folder, *model).code == 0
    both, alone = (cv2.imread(str(tmp_path / folder / "hand_fist.png")) for folder in ("all", "one"))
    np.testing.assert_array_equal(both, alone)  # with the number of its hand


@exhaustive
def test_a_clip_without_hands_says_so_after_a_second(texelflow: Command, tmp_path: Path) -> None:
    model = "--model", "palm-detection-lite", "--backend", "cpu"
    (first, _) = replayed(texelflow, tmp_path, 0, *model)
    assert first["findings"] == []
    before = picture(tmp_path, 0)
    replayed(texelflow, tmp_path, 0, *model, "--effect", "none")
    np.testing.assert_array_equal(before, picture(tmp_path, 0))
    replayed(texelflow, tmp_path, 60, *model, frames=9)  # and those that the networks see before them
    (plain := tmp_path / "plain").mkdir()
    replayed(texelflow, plain, 68, *model, "--effect", "none")
    rows, columns = np.nonzero(np.abs(picture(tmp_path, 68) - picture(plain, 68)).max(axis=2) > 24)
    assert len(rows)
    assert (rows.min() > 440, columns.max() < 200) == (True, True)  # small, in a corner


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--masks", "masks"), "--masks: hand-landmark-full finds things and has no mask"),
        (("--threshold", 0.4), "--threshold: hand-landmark-full finds things and has no mask"),
        (("--effect", "blur"), "--effect blur: hand-landmark-full finds things and has no mask; with it there are"),
        (("--classes", "person"), "--channel: hand-landmark-full finds things and has no mask"),
        (("--output-range", "0,1"), "--output-range: hand-landmark-full finds things and puts out no picture"),
        (("--private", "--effect", "findings"), "--private: hand-landmark-full with effect findings shows the room"),
    ],
)
def test_what_a_finder_cannot_follow_is_refused(
    options: tuple[object, ...], complaint: str, texelflow: Command
) -> None:
    assert complaint in texelflow("replay", CLIP, "--model", "hand-landmark-full", *options).complaint


def test_what_a_segmentation_cannot_follow_is_refused(texelflow: Command) -> None:
    assert "finds nothing that could be followed" in texelflow("replay", CLIP, "--most", 3).complaint


def test_a_pipeline_tells_what_it_found_in_the_last_frame(frame_rgba: npt.NDArray[np.uint8]) -> None:
    frame = np.ascontiguousarray(frame_rgba[..., :3])
    with library.Pipeline(model="face-detection-short", backend="cpu", quiet=True) as camera:
        assert list(camera.findings) == []
        picture = camera(frame)
        assert {found.kind for found in camera.findings} == {"face"}
        assert not np.array_equal(picture, frame)
        camera.set(model="selfie")
        camera(frame)
        assert list(camera.findings) == []
        camera.set(model="face-detection-short", effect="none")
        np.testing.assert_array_equal(camera(frame), frame)
        assert len(camera.findings) > 0


@exhaustive
def test_a_video_tells_what_was_found_in_each_picture() -> None:
    span = {"start": FRAME, "end": FRAME + 2}
    with library.video(CLIP, model="face-landmark", backend="cpu", quiet=True, **span) as video:
        kinds = [{found.kind for found in video.findings} for _ in video]
    assert kinds == [{"face"}] * 3


@one_in(2, "model", ["face-landmark", "selfie"])
def test_a_face_is_found_once_where_a_part_of_the_frame_follows_it(
    model: str, texelflow: Command, tmp_path: Path
) -> None:
    lines = replayed(texelflow, tmp_path, FRAME - 20, "--model", model, "--frame", "person", "--backend", "cpu")
    assert [[each["kind"] for each in line["findings"]] for line in lines] == [["face"]] * 2

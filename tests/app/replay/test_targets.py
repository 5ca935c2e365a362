"""Where the results of inputs go, by what was named for them: decided before anything is opened."""

from pathlib import Path

import pytest

from texelflow.app.media.media_inputs import InputKind, MediaInput
from texelflow.app.replay.targets import FORMATS, OutputFormat, parse_format, targets_of
from texelflow.gpu_delegate.base.errors import UsageError

CLIP, OTHER = MediaInput("in/clip.mp4", "recording", "clip"), MediaInput("b/clip.mkv", "recording", "clip-2")
PHOTO, SHOTS = MediaInput("photo.jpg", "picture", "photo"), MediaInput("shot_%04d.png", "sequence", "shot")


def out(*inputs: MediaInput, to: str, format: OutputFormat | None = None, transparent: bool = False) -> list[str]:
    return [target.outputs["out"] for target in targets_of(inputs, {"out": to}, format, transparent)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_one_recording_goes_where_it_is_said() -> None:
    for to in ("x.mp4", "x.webm", "frames", "-"):
        assert out(CLIP, to=to) == [to]


def test_a_picture_is_a_file_of_its_name_or_the_one_that_is_said() -> None:
    assert out(PHOTO, to="done") == ["done/photo.png"]
    assert out(PHOTO, to="x.png") == ["x.png"]
    assert out(PHOTO, CLIP, to="done") == ["done/photo.png", "done/clip.mp4"]


def test_several_get_a_file_each() -> None:
    assert out(CLIP, OTHER, SHOTS, to="done") == ["done/clip.mp4", "done/clip-2.mp4", "done/shot.mp4"]
    assert out(CLIP, OTHER, to="done", transparent=True) == ["done/clip.mov", "done/clip-2.mov"]


def test_a_format_decides() -> None:
    assert out(CLIP, to="done", format="mkv") == ["done/clip.mkv"]
    assert out(CLIP, PHOTO, to="done", format="webm") == ["done/clip.webm", "done/photo.webm"]
    assert out(CLIP, OTHER, to="done", format="png") == ["done/clip", "done/clip-2"]
    assert out(CLIP, to="done", format="png") == ["done"]
    assert out(CLIP, to="-", format="png") == ["-"]


def test_masks_are_pictures() -> None:
    one, two = targets_of((CLIP, PHOTO), {"out": "done", "masks": "masks", "cutouts": ""}, "mp4", False)
    assert one.outputs == {"out": "done/clip.mp4", "masks": "masks/clip"}
    assert two.outputs == {"out": "done/photo.mp4", "masks": "masks/photo.png"}
    (alone,) = targets_of((CLIP,), {"masks": "masks"}, None, False)
    assert alone.outputs == {"masks": "masks"}


@pytest.mark.parametrize(
    ("inputs", "to", "format", "complaint"),
    [
        ((CLIP, OTHER), "x.mp4", None, "--out x.mp4: 2 inputs need a folder, such as x$"),
        ((CLIP, OTHER), "-", None, "--out -: 2 inputs need a folder, such as results"),
        ((CLIP,), "x.png", None, "a recording has many pictures; name a folder, such as x$"),
        ((CLIP,), "x.mp4", "mkv", "--format mkv and --out x.mp4 exclude each other"),
        ((CLIP,), "-", "mp4", "--format mp4 does not go into a pipe; mkv and png do"),
    ],
)
def test_what_does_not_go_together(
    inputs: tuple[MediaInput, ...], to: str, format: OutputFormat | None, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        out(*inputs, to=to, format=format)


def test_formats_by_name() -> None:
    assert [parse_format(name) for name in FORMATS] == [*FORMATS]
    assert parse_format(None) is None
    with pytest.raises(UsageError, match="--format avi: one of png, mp4, mkv, mov, webm is needed"):
        parse_format("avi")


@pytest.mark.parametrize("kind", ["recording", "picture", "sequence", "stream"])
def test_nothing_is_made_where_nothing_was_named(kind: InputKind) -> None:
    (target,) = targets_of((MediaInput("x", kind, "x"),), {}, None, False)
    assert target.outputs == {}

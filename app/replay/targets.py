"""Decides where the results of each input go.

One recording: `out` as it is named, a video, or a folder for its frames as PNG files. A picture: a PNG file, in a
folder under its own name. Several inputs: folders, in which each gets a file of its name, a video of a recording and a
PNG file of a picture. A format that is asked for decides in every case.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.wording import meant

from ..files import refuse_name
from ..media.media_inputs import MediaInput
from ..outputs.png_files import PIPE, is_picture, wants_folder

OutputFormat = Literal["png", "mp4", "mkv", "mov", "webm"]
FORMATS: tuple[OutputFormat, ...] = get_args(OutputFormat)
_OUTPUTS = ("out", "masks", "cutouts")


def parse_format(text: str | None) -> OutputFormat | None:
    """What --format names. Raises UsageError."""
    for format in FORMATS:
        if text == format:
            return format
    if text is None:
        return None
    raise UsageError(f"--format {text[:40]}: one of {', '.join(FORMATS)} is needed{meant(text, FORMATS)}")


@dataclass(frozen=True)
class ReplayTarget:
    """One input, and the settings that name its outputs. `folders` are those of them that get numbered PNG files."""

    input: MediaInput
    outputs: Mapping[str, str]
    folders: tuple[str, ...] = ()


def targets_of(
    inputs: Sequence[MediaInput], outputs: Mapping[str, str], format: OutputFormat | None, transparent: bool
) -> tuple[ReplayTarget, ...]:
    """What each input makes, in their order; `outputs` are the settings out, masks and cutouts as they were given.

    `transparent` says that pictures have transparency, which an mp4 has not. Raises UsageError.
    """
    given = {name: Path(outputs[name]) for name in _OUTPUTS if outputs.get(name)}
    several = len(inputs) > 1
    for name, path in given.items():
        refuse_name(f"--{name}", path)
        if several and (str(path) == PIPE or not wants_folder(path)):
            raise UsageError(f"--{name} {path}: {len(inputs)} inputs need a folder, such as {_folder_like(path)}")

    def target(each: MediaInput) -> ReplayTarget:
        places = {name: _place(name, path, each, format, several, transparent) for name, path in given.items()}
        folders = tuple(place for name, place in places.items() if several and place == str(given[name] / each.stem))
        return ReplayTarget(each, places, folders)

    return tuple(map(target, inputs))


def _place(
    name: str, path: Path, each: MediaInput, format: OutputFormat | None, several: bool, transparent: bool
) -> str:
    """Where one output of one input goes."""
    if str(path) == PIPE:
        if format not in (None, "mkv", "png"):
            raise UsageError(f"--format {format} does not go into a pipe; mkv and png do")
        return PIPE
    if not wants_folder(path):
        _check_file(name, path, each, format)
        return str(path)
    kind = format if name == "out" else None
    if kind is None:
        kind = "png" if each.kind == "picture" or not several or name != "out" else "mov" if transparent else "mp4"
    if kind != "png":
        return str(path / f"{each.stem}.{kind}")
    if each.kind == "picture":
        return str(path / f"{each.stem}.png")
    return str(path / each.stem) if several else str(path)


def _check_file(name: str, path: Path, each: MediaInput, format: OutputFormat | None) -> None:
    """Raise UsageError for a file that the input, or the format, does not go into."""
    if is_picture(path) and each.kind != "picture":
        raise UsageError(f"--{name} {path}: a recording has many pictures; name a folder, such as {_folder_like(path)}")
    if name == "out" and format and path.suffix.lower() != f".{format}":
        raise UsageError(f"--format {format} and --out {path} exclude each other; leave one out, or name a folder")


def _folder_like(path: Path) -> str:
    return "results" if str(path) == PIPE else str(path.with_suffix(""))

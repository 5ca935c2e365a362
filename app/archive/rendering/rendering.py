"""Renders an input, or a piece of one, as replay does, to files in a folder.

Files have the names of their kinds: out.mp4, masks.mp4; a folder of numbered PNG files is called out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from texelflow.gpu_delegate.base.errors import MediaError

from ...console import Console
from ...media.media_inputs import InputKind
from ...media.piece_source import FrameIndex
from ...replay.replay import replay
from ...replay.replay_engine import ReplayEngine
from ...replay.replay_options import ReplayOptions
from ...replay.targets import OutputFormat
from ...settings.settings import Settings
from ..jobs.failures import StoppedError
from ..jobs.jobs import Agreement, FrameRange

MASKS = "masks"
PICTURE = "out"
_OF_RESULTS: Mapping[str, str] = MappingProxyType({PICTURE: "", MASKS: ".masks"})  # what is added to an input's name


@dataclass(frozen=True)
class Rendered:
    """What one replay came to; `files` by kind."""

    files: Mapping[str, Path]
    frames: int
    backend: str
    renderer: str
    agreement: Agreement | None
    cut_off: str | None
    notes: tuple[str, ...]
    decoded_head: tuple[int, ...] = ()
    decoded_tail: tuple[int, ...] = ()


def ending_of(kind: InputKind, format: OutputFormat | None, transparent: bool, of_masks: bool = False) -> str:
    """What the name of a result ends in: "" for a folder of PNG files. Masks have no transparency."""
    if kind == "picture":
        return ".png"
    if format is None:
        return ".mov" if transparent and not of_masks else ".mp4"
    return "" if format == "png" else f".{format}"


def result_name(name: str, kind: str, file: Path) -> str:
    """Where a file of that kind of result goes, below the output folder, of the input that is called `name`."""
    return f"{name}{_OF_RESULTS[kind]}{file.suffix}"


@dataclass(frozen=True)
class Rendering:
    """How all inputs of a run are rendered."""

    settings: Settings
    format: OutputFormat | None
    with_masks: bool
    sampled_every: int
    most_frame_bytes: int

    def files(self, kind: InputKind, folder: Path) -> Mapping[str, Path]:
        """What an input of that kind becomes there, by kind of result."""
        transparent, kinds = self.settings.effect == "cutout", (PICTURE, MASKS) if self.with_masks else (PICTURE,)
        return {each: folder / f"{each}{ending_of(kind, self.format, transparent, each == MASKS)}" for each in kinds}

    def render(
        self,
        engine: ReplayEngine,
        path: Path,
        kind: InputKind,
        folder: Path,
        made_by: str | None = None,
        piece: FrameRange | None = None,
        index: FrameIndex | None = None,
    ) -> Rendered:
        """Render an input, or a piece of it, to an empty folder. Raises TexelflowError, StoppedError."""
        files = self.files(kind, folder)
        masks = str(files[MASKS]) if self.with_masks else ""
        settings = replace(self.settings, out=str(files[PICTURE]), masks=masks, cutouts="")
        options = ReplayOptions(
            path, settings=settings, made_by=made_by, sampled_every=self.sampled_every,
            most_frame_bytes=self.most_frame_bytes,
        )  # fmt: skip
        if piece:
            options = replace(
                options, first=piece.first, last=piece.last, piece_lead=piece.lead, index=index, made_by=None
            )
        summary, _ = replay(options, engine.console, lambda done, total, what="": None, engine)
        if summary["interrupted"]:
            raise StoppedError
        for file in files.values():
            if not file.exists():
                raise MediaError(f"'{path}' gave no frame")
        return _rendered(summary, files, path)


class SilentConsole(Console):
    """Says nothing."""

    def warn(self, line: str) -> None:
        """Nothing."""

    def note(self, line: str) -> None:
        """Nothing."""


def _rendered(summary: Mapping[str, Any], files: Mapping[str, Path], path: Path) -> Rendered:
    found = summary.get("agreement")
    agreement = Agreement(found["frames"], found["least_iou"], found["largest_error"]) if found else None
    notes = tuple(str(line).replace(str(path), path.name) for line in summary["warnings"])
    return Rendered(
        files, summary["frames"], summary["backend"], summary["renderer"], agreement, summary["missing"], notes,
        summary.get("decoded_head", ()), summary.get("decoded_tail", ()),
    )  # fmt: skip

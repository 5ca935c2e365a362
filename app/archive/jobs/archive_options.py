"""The options of `archive`, as one value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...replay.targets import OutputFormat
from ...settings.config_watch import ConfigWatch

PIECE_FRAMES = 3000  # of a recording that is cut; a multiple of the frames after which encoders begin anew


@dataclass(frozen=True)
class ArchiveOptions:
    """One archive: what, by which settings, to which folder, and who works.

    `flags` are the settings that were given, values by name, which count above those of the file `config`; out, masks
    and cutouts are not among them.
    """

    inputs: Sequence[str]
    out: Path
    flags: Mapping[str, object] = field(default_factory=dict)
    config: Path | None = None
    with_masks: bool = False  # a video or picture of masks beside each result
    format: OutputFormat | None = None
    cluster: str | None = None  # a Ray's host:port, auto or local; None: processes of this machine
    workers: int | None = None  # in all; None: one for each GPU, or for half of the cores
    resume: bool = False
    retry_failed: bool = False
    force: bool = False  # a folder that has a manifest begins anew
    whole: bool = False  # nothing is cut
    piece_frames: int = PIECE_FRAMES
    follow_links: bool = False  # in folders, also out of them

    def watch(self) -> ConfigWatch:
        """The settings, and what watches their file. Raises UsageError."""
        return ConfigWatch(self.config, self.flags, "archive", overlay=False)

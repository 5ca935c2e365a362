"""What every worker of a run has to know, the same for all of them: plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...replay.held_frames import most_frames
from ...replay.targets import OutputFormat
from ...settings.settings import Settings

STAGING = ".archive"  # in the output folder, so that renaming moves nothing
SAMPLED_EVERY = 300  # frames, of which one is compared with TensorFlow Lite
MOST_FRAME_BYTES = 4 << 30  # of the frames that a worker has in memory
CACHE_BYTES = 16 << 30  # of fetched inputs, on each node


@dataclass(frozen=True)
class WorkerConfig:
    """How inputs are rendered, and where to. Settings name a model and a background that every node can read.

    settings and made_from are those of `prepare_staging`. versions are `own_versions` of the driver: a worker that has
    others does no job. Paths are absolute, and mean the same on every node, but for `cache`, which is each node's own.
    """

    out: Path
    settings: Settings
    made_from: tuple[str, ...] = ()  # what tags results, with their input
    format: OutputFormat | None = None
    with_masks: bool = False
    whole: bool = False  # nothing is cut
    piece_frames: int = 3000
    lead: int = 0  # frames before a piece, that the network sees
    sampled_every: int = SAMPLED_EVERY  # 0: nothing is compared with TensorFlow Lite
    cache: Path | None = None  # of fetched inputs; None: in texelflow's own cache folder
    cache_bytes: int = CACHE_BYTES
    most_frame_bytes: int = MOST_FRAME_BYTES
    versions: Mapping[str, str] = field(default_factory=dict)
    overwrites: bool = False  # results may take the place of files that are not theirs
    began_ns: int = 0  # the run, by the clock of the output folder's file system

    @property
    def most_frames(self) -> int:
        """That a worker holds in memory, however long recordings are; their bytes are most_frame_bytes at most."""
        return most_frames(2 if self.with_masks else 1)

    @property
    def made_of_frames(self) -> str:
        """A text that is the same where the same is made of the same frames."""
        named = self.settings.model, self.settings.background, str(self.format), str(self.with_masks)
        return "\n".join((*self.made_from, *named, self.versions.get("texelflow", "")))

    @property
    def staging(self) -> Path:
        """Where what is under way lies, on the file system of the results."""
        return self.out / STAGING

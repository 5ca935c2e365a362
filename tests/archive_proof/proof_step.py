"""Where a proof works, and what one step of it found: rows for a table, figures for JSON, promises that were broken."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.archive_proof.clip_files import made_clips
from tests.archive_proof.recipes import PlannedClip, planned_clips


@dataclass(frozen=True)
class ProofPlace:
    """`clips` takes the archive, made once; `work` what is made of it, anew each time."""

    clips: Path
    work: Path
    seed: int = 0
    fewer: int = 1
    rounds: int = 3  # of what is timed

    def made(self) -> list[PlannedClip]:
        """All clips, which have files then."""
        clips = planned_clips(self.fewer)
        made_clips(self.clips, clips)
        return clips

    def fresh(self, name: str) -> Path:
        """An empty folder of this name."""
        folder = self.work / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder


@dataclass
class ProofReport:
    """What one step found."""

    rows: list[tuple[str, str]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)

    def add(self, what: str, found: object, **figures: Any) -> None:
        """One more row, and its figures by name."""
        self.rows.append((what, str(found)))
        self.figures.update(figures)

    def add_memory(self, memory: Mapping[str, Any]) -> None:
        """What nodes took: a row for each."""
        for name, node in memory.items():
            slopes = f"Ray's {_told(node.ray_slope_mib_a_minute)}, a worker's {_told(node.worker_slope_mib_a_minute)}"
            self.add(f"memory of {name}", f"{node.least_mib} to {node.most_mib} MiB, slope {slopes}")
        self.figures["memory"] = {name: vars(node) for name, node in memory.items()}


def _told(slope: float | None) -> str:
    return "not known" if slope is None else f"{slope:+.1f} MiB a minute"

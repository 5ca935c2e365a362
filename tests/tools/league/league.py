"""Runs the league, model by model, into a file from which an interrupted run goes on."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .entrants import Entrant
from .trials import Bounds, Figures, check_once, measured

FILE = Path("build", "league.json")
USUAL = Bounds()


@dataclass
class League:
    """The rows of a run, and those of the last whole run before it, by name."""

    rows: dict[str, Figures] = field(default_factory=dict)
    before: dict[str, Figures] = field(default_factory=dict)
    is_whole: bool = False
    commit: str = ""

    @classmethod
    def read(cls, file: Path) -> "League":
        """What a file has; nothing where there is none."""
        if not file.exists():
            return cls()
        found = json.loads(file.read_text(encoding="utf-8"))
        rows, before = ({row["name"]: row for row in found[key]} for key in ("models", "before"))
        return cls(rows, before, found["whole"], found["commit"])

    def write(self, file: Path) -> None:
        """All of it, so that a kill in between leaves the file as it was."""
        file.parent.mkdir(parents=True, exist_ok=True)
        lists = {"models": [*self.rows.values()], "before": [*self.before.values()]}
        fresh = file.with_suffix(".fresh")
        fresh.write_text(json.dumps({"whole": self.is_whole, "commit": self.commit, **lists}, indent=1) + "\n")
        fresh.replace(file)


def run_league(
    chosen: Sequence[Entrant],
    file: Path = FILE,
    bounds: Bounds = USUAL,
    is_anew: bool = False,
    tell: Callable[[str], object] = print,
    measure: Callable[[Entrant, Path, Bounds], Figures] = measured,
) -> League:
    """Measure what an interrupted run has not, else all of them anew; rows of other models stay as they are."""
    league = League.read(file)
    if league.is_whole or is_anew:
        league = League(dict(league.rows), league.rows if league.is_whole else league.before)
        for entrant in chosen:
            league.rows.pop(entrant.name, None)
    league.commit = league.commit or commit_of(Path.cwd())
    league.is_whole = False
    check_once()
    for number, entrant in enumerate(chosen, 1):
        if league.rows.get(entrant.name, {}).get("sha256") == entrant.sha256:
            continue
        tell(f"{number}/{len(chosen)} {entrant.name}")
        folder = Path(tempfile.mkdtemp(prefix="league-"))
        try:
            league.rows[entrant.name] = measure(entrant, folder, bounds)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        league.write(file)
    league.is_whole = True
    league.write(file)
    return league


def commit_of(folder: Path) -> str:
    """The commit of a working copy; "" outside of one."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=folder, capture_output=True, text=True)
    return done.stdout.strip()

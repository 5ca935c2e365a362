"""The cases that are measured: commands, in which places stand for files."""

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
SCRIPT_PYTHON = ROOT / "build" / "script-env" / "bin" / "python"

_TEXELFLOW = (sys.executable, "-m", "texelflow.app")
_SCRIPT = (str(SCRIPT_PYTHON), str(Path(__file__).parent / "script.py"), "{clip}", "--model", "{model}")
_REPLAY = (*_TEXELFLOW, "replay", "{clip}")
_LIVE = (*_TEXELFLOW, "live", "--camera", "{clip}", "--no-window", "--no-tune")


@dataclass(frozen=True)
class Case:
    """A command: {clip} is the video, {out} a path in an empty folder that has no ending yet, {model} the network.

    A live one plays the clip in a loop at its own rate until it is told to end.
    """

    name: str
    command: tuple[str, ...]
    is_live: bool = False

    def filled(self, clip: Path, out: Path, model: Path) -> tuple[str, ...]:
        """The command to run."""
        return tuple(part.format(clip=clip, out=out, model=model) for part in self.command)


CASES = (
    Case("decode, encode", (sys.executable, "-m", "tests.tools.whole_frame.reference", "{clip}", "{out}.mp4")),
    Case("replay, replace, cpu", (*_REPLAY, "--out", "{out}.mp4", "--effect", "replace", "--backend", "cpu")),
    Case("replay, replace, gl", (*_REPLAY, "--out", "{out}.mp4", "--effect", "replace", "--backend", "gl")),
    Case("replay, blur, cpu", (*_REPLAY, "--out", "{out}.mp4", "--effect", "blur", "--backend", "cpu")),
    Case("replay, blur, gl", (*_REPLAY, "--out", "{out}.mp4", "--effect", "blur", "--backend", "gl")),
    Case("replay, unrefined, cpu",
         (*_REPLAY, "--out", "{out}.mp4", "--effect", "replace", "--backend", "cpu", "--no-refine")),
    Case("replay, nothing drawn, cpu", (*_REPLAY, "--log", "{out}.csv", "--backend", "cpu")),
    Case("script", (*_SCRIPT, "--out", "{out}.mp4")),
    Case("script, guided", (*_SCRIPT, "--out", "{out}.mp4", "--refine", "guided")),
    Case("script, guided, null", (*_SCRIPT, "--null", "--refine", "guided")),
    Case("archive", (*_TEXELFLOW, "archive", "{clip}", "--out", "{out}", "--effect", "replace")),
    Case("live, blur", (*_LIVE, "--out", "{out}.mp4"), is_live=True),
    Case("live, masks alone", (*_LIVE, "--masks", "{out}.mp4"), is_live=True),
)  # fmt: skip

"""Plans what `bench gpu` measures, in which order and for how long, by the models at hand and a budget."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.wording import meant

from ...models.entries import CATALOGUE

Kind = Literal["verb", "part", "litert", "mediapipe"]

_SEGMENTER = "selfie"  # what the names of models for the frame job begin with
SIZES = ("640x480", "1280x720", "1920x1080", "3840x2160")
SHORTEST_S, LONGEST_S = 5.0, 3600.0  # of a budget
LEAST_S = 1.0  # nothing is begun with less time
MOST_S = 60.0  # of one measurement: what hangs leaves time for the others
_REST = 1 << 20  # a round behind those of all models


@dataclass(frozen=True)
class Section:
    """A part of the report."""

    name: str
    title: str


@dataclass(frozen=True)
class Measurement:
    """One process: a verb with its arguments, a part of gpu_parts.py, or a peer's program.

    Those of round 0 come first, whatever section they are of; then a round for each further model.
    """

    section: str
    name: str
    kind: Kind
    arguments: tuple[str, ...]
    round: int = 0


SECTIONS = (
    Section("doctor", "What this machine has and lacks"),
    Section("device", "The GPU and its driver"),
    Section("peaks", "Compute power: CPU and GPU, fp32 and fp16"),
    Section("fidelity", "Results against TensorFlow Lite on the CPU"),
    Section("frame", "The frame job"),
    Section("tuning", "Before and after tuning"),
    Section("models", "Models, each dispatch and its roof"),
    Section("sizes", "The frame job from 480p to 4K"),
    Section("uploads", "Ways to upload a frame"),
    Section("waits", "Ways to wait for the GPU"),
    Section("live", "The window of live, on the test pattern"),
    Section("memory", "Memory"),
    Section("energy", "Energy of a frame"),
    Section("peers", "LiteRT's GPU accelerator and MediaPipe's delegate"),
)


@dataclass(frozen=True)
class Effort:
    """How often things are run, seconds after which runs end early, and those that tuning may take."""

    runs: int
    most_s: float
    tuning_s: float

    @property
    def flags(self) -> tuple[str, ...]:
        """Of verbs that run things again and again."""
        return "--warmup", str(min(10, self.runs)), "--runs", str(self.runs), "--json"


def effort_for(budget_s: float) -> Effort:
    """Few runs where there is little time."""
    return (
        Effort(100, 4.0, 30.0) if budget_s >= 300 else Effort(20, 2.0, 10.0) if budget_s >= 60 else Effort(3, 0.5, 2.0)
    )


def chosen_sections(only: str | None) -> tuple[Section, ...]:
    """All, or those named, by commas, in the report's order. Raises UsageError for others."""
    names = [section.name for section in SECTIONS]
    wanted = names if only is None else [name.strip() for name in only.split(",")]
    for name in wanted:
        if name not in names:
            raise UsageError(f"--only {name}: no such section; there are {', '.join(names)}{meant(name, names)}")
    return tuple(section for section in SECTIONS if section.name in wanted)


def planned(
    sections: Sequence[Section], models: Sequence[str], networks: Sequence[str], budget_s: float
) -> tuple[Measurement, ...]:
    """All measurements, in their order. `models` are on the disk, `networks` are made on the way."""
    effort, names = effort_for(budget_s), [section.name for section in sections]
    ordered = sorted(models, key=lambda name: not name.startswith(_SEGMENTER))
    main = ordered[0] if ordered and ordered[0].startswith(_SEGMENTER) else None
    found = [
        Measurement("doctor", "doctor", "verb", ("doctor", "--json")),
        Measurement("device", "device", "part", ("device",)),
        Measurement("peaks", "peaks", "part", ("peaks",)),
        Measurement("uploads", "rgba", "part", ("uploads", *SIZES)),
        *(_of_segmenter(main, effort) if main else ()),
        *(each for number, name in enumerate((*ordered, *networks)) for each in _of_model(name, number, effort)),
        *(each for name in ordered[1:] if name.startswith(_SEGMENTER) for each in _frame_jobs(name, effort, _REST)),
    ]
    wanted = (measurement for measurement in found if measurement.section in names)
    return tuple(sorted(wanted, key=lambda measurement: (measurement.round, names.index(measurement.section))))


def allowance_s(left_s: float) -> float:
    """Seconds that the next measurement may take; 0 where there is no time for another."""
    return min(left_s, MOST_S) if left_s >= LEAST_S else 0.0


def _of_segmenter(model: str, effort: Effort) -> Iterator[Measurement]:
    """What is measured of the program, with one model."""
    runs = ("--runs", str(effort.runs), "--json")
    live = ("bench", "live", "--model", model, "--frames", str(max(10, effort.runs // 2)), "--json")
    yield from _frame_jobs(model, effort, 0)
    tuned = ("bench", "frame", "--model", model, *effort.flags)
    yield Measurement("tuning", model, "verb", ("tune", model, "--budget", f"{effort.tuning_s:g}s", "--json"))
    yield Measurement("tuning", f"{model}, fp32, tuned", "verb", tuned)
    yield from _sizes(model, effort)
    yield Measurement("waits", model, "verb", ("bench", "waits", model, *runs))
    yield Measurement("live", model, "verb", live)
    yield Measurement("memory", model, "part", ("memory", model, *SIZES))
    yield Measurement("energy", model, "part", ("energy", model))
    for where in ("gpu", "cpu"):
        arguments = (model, where, str(effort.runs), SIZES[0])
        yield Measurement("peers", f"MediaPipe, {where}: {model}", "mediapipe", arguments)


def _of_model(model: str, number: int, effort: Effort) -> Iterator[Measurement]:
    """What is measured of each model."""
    for way, options in {"gpu": ("--per-op",), "cpu": ("--backend", "cpu")}.items():
        arguments = ("bench", "model", *options, *effort.flags, f"--max_secs={effort.most_s:g}", "--", model)
        yield Measurement("models", f"{model}, {way}", "verb", arguments, number)
    if model in CATALOGUE:
        yield Measurement("fidelity", model, "verb", ("check", model, "--json"), number)
        yield Measurement("peers", f"LiteRT: {model}", "litert", (model, str(effort.runs)), number)


def _frame_jobs(model: str, effort: Effort, round: int) -> Iterator[Measurement]:
    for way, options in {"fp32": (), "fp16": ("--precision", "fp16"), "cpu": ("--backend", "cpu")}.items():
        arguments = ("bench", "frame", "--model", model, *options, *effort.flags)
        yield Measurement("frame", f"{model}, {way}", "verb", arguments, round)


def _sizes(model: str, effort: Effort) -> Iterator[Measurement]:
    for size in SIZES:
        for backend in ("gl", "cpu"):
            arguments = ("bench", "frame", "--model", model, "--size", size, "--backend", backend, *effort.flags)
            yield Measurement("sizes", f"{size}, {backend}", "verb", arguments)

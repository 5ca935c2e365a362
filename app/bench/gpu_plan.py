"""Models at hand and a budget go in; what `bench gpu` measures comes out, in its order, and how long each may take."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from texelflow.gpu_delegate.errors import UsageError
from texelflow.gpu_delegate.wording import meant

from ..media.sources import parse_position

Kind = Literal["verb", "part", "litert", "mediapipe"]

SIZES = ("640x480", "1280x720", "1920x1080", "3840x2160")
SHORTEST_S, LONGEST_S = 5.0, 3600.0  # of a budget
LEAST_S = 1.0  # nothing is begun with less time
_FIRST_S = 20.0  # that the first measurement of a section may take, whatever its share


@dataclass(frozen=True)
class Section:
    """A part of the report, and how much of the budget it may take at most."""

    name: str
    title: str
    share: float


@dataclass(frozen=True)
class Measurement:
    """One process: a verb with its arguments, a part of gpu_parts.py, or a peer's program."""

    section: str
    name: str
    kind: Kind
    arguments: tuple[str, ...]


SECTIONS = (
    Section("doctor", "What this machine has and lacks", 0.1),
    Section("device", "The GPU and its driver", 0.05),
    Section("peaks", "Compute power: CPU and GPU, fp32 and fp16", 0.1),
    Section("fidelity", "Results against TensorFlow Lite on the CPU", 0.25),
    Section("frame", "The frame job", 0.2),
    Section("models", "Models, each dispatch and its roof", 0.45),
    Section("sizes", "The frame job from 480p to 4K", 0.2),
    Section("uploads", "Ways to upload a frame", 0.05),
    Section("waits", "Ways to wait for the GPU", 0.05),
    Section("live", "The window of live, on the test pattern", 0.15),
    Section("memory", "Memory", 0.1),
    Section("energy", "Energy of a frame", 0.1),
    Section("peers", "LiteRT's GPU accelerator and MediaPipe's delegate", 0.3),
)


def parse_budget(text: str) -> float:
    """Seconds of 90, 90s or 7:30. Raises UsageError."""
    try:
        budget_s = float(parse_position(text))
    except UsageError:
        budget_s = 0.0
    if not SHORTEST_S <= budget_s <= LONGEST_S:
        raise UsageError(
            f"--budget {text}: a time from {SHORTEST_S:g} to {LONGEST_S:g} s is needed, such as 90s or 7:30"
        )
    return budget_s


@dataclass(frozen=True)
class Effort:
    """How often things are run, and seconds after which runs end early."""

    runs: int
    most_s: float


def effort_for(budget_s: float) -> Effort:
    """Few runs where there is little time."""
    return Effort(100, 4.0) if budget_s >= 300 else Effort(20, 2.0) if budget_s >= 60 else Effort(3, 0.5)


def chosen_sections(only: str | None) -> tuple[Section, ...]:
    """All, or those named, by commas, in the report's order. Raises UsageError for others."""
    names = [section.name for section in SECTIONS]
    wanted = names if only is None else [name.strip() for name in only.split(",")]
    for name in wanted:
        if name not in names:
            raise UsageError(f"--only {name}: {', '.join(names)} are the sections{meant(name, names)}")
    return tuple(section for section in SECTIONS if section.name in wanted)


def planned(
    sections: Sequence[Section], models: Sequence[str], networks: Sequence[str], budget_s: float
) -> tuple[Measurement, ...]:
    """All measurements, section by section. `models` are on the disk, `networks` are made on the way."""
    effort = effort_for(budget_s)
    runs = ("--warmup", str(min(10, effort.runs)), "--runs", str(effort.runs), "--json")
    bounded = (*runs, f"--max_secs={effort.most_s:g}")
    segmenters = [name for name in models if name.startswith("selfie")]
    found = [
        Measurement("doctor", "doctor", "verb", ("doctor", "--json")),
        Measurement("device", "device", "part", ("device",)),
        Measurement("peaks", "peaks", "part", ("peaks",)),
        *(Measurement("fidelity", name, "verb", ("check", name, "--json")) for name in _first(models, "selfie")),
        *_frame_jobs(segmenters, runs),
        *_models((*_first(models, "selfie"), *networks), bounded),
        *_sizes(segmenters[:1], runs),
        Measurement("uploads", "rgba", "part", ("uploads", *SIZES)),
        *(Measurement("waits", name, "verb", ("bench", "waits", name, *_only_runs(effort))) for name in segmenters[:1]),
        *(Measurement("live", name, "verb", _live(name, effort)) for name in segmenters[:1]),
        *(Measurement("memory", name, "part", ("memory", name, *SIZES)) for name in segmenters[:1]),
        *(Measurement("energy", name, "part", ("energy", name)) for name in segmenters[:1]),
        *(Measurement("peers", f"LiteRT: {name}", "litert", (name, str(effort.runs))) for name in models),
        *(_mediapipe(name, where, effort) for name in segmenters[:1] for where in ("gpu", "cpu")),
    ]
    names = {section.name for section in sections}
    return tuple(measurement for measurement in found if measurement.section in names)


def allowance_s(section: Section, budget_s: float, left_s: float, taken_s: float, is_first: bool) -> float:
    """Seconds that the next measurement of a section may take, which has taken so many; 0 where it is to be left out.

    A section ends at its share of the budget, but for its first measurement, which may take a little more.
    """
    share_s = section.share * budget_s - taken_s
    allowed = min(left_s, max(share_s, _FIRST_S) if is_first else share_s)
    return allowed if allowed >= LEAST_S else 0.0


def _first(names: Sequence[str], wanted: str) -> list[str]:
    """The same with one of them in front."""
    return sorted(names, key=lambda name: name != wanted)


def _only_runs(effort: Effort) -> tuple[str, ...]:
    return "--runs", str(effort.runs), "--json"


def _live(model: str, effort: Effort) -> tuple[str, ...]:
    return "bench", "live", "--model", model, "--frames", str(max(10, effort.runs // 2)), "--json"


def _frame_jobs(segmenters: Collection[str], runs: tuple[str, ...]) -> list[Measurement]:
    ways = {"fp32": (), "fp16": ("--precision", "fp16"), "cpu": ("--backend", "cpu")}
    return [
        Measurement("frame", f"{model}, {way}", "verb", ("bench", "frame", "--model", model, *options, *runs))
        for model in segmenters
        for way, options in ways.items()
    ]


def _models(names: Collection[str], bounded: tuple[str, ...]) -> list[Measurement]:
    ways = {"gpu": ("--per-op",), "cpu": ("--backend", "cpu")}
    return [
        Measurement("models", f"{model}, {way}", "verb", ("bench", "model", *options, *bounded, "--", model))
        for model in names
        for way, options in ways.items()
    ]


def _sizes(segmenters: Collection[str], runs: tuple[str, ...]) -> list[Measurement]:
    return [
        Measurement(
            "sizes", f"{size}, {backend}", "verb",
            ("bench", "frame", "--model", model, "--size", size, "--backend", backend, *runs),
        )
        for model in segmenters
        for size in SIZES
        for backend in ("gl", "cpu")
    ]  # fmt: skip


def _mediapipe(model: str, where: str, effort: Effort) -> Measurement:
    return Measurement("peers", f"MediaPipe, {where}: {model}", "mediapipe", (model, where, str(effort.runs), SIZES[0]))

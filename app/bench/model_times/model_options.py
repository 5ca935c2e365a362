"""Parses the options of `bench model`, by its own names and by those of TensorFlow Lite's benchmark_model.

What is wrong or contradicts each other is told in one line.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.wording import meant
from texelflow.gpu_delegate.device.device import COMPILE_BUDGET_S
from texelflow.gpu_delegate.model.graph import Hybrid
from texelflow.gpu_delegate.plan.compile_options import COMPILE_DEFAULTS, CompileOptions
from texelflow.gpu_delegate.reading.model_file import printable_name
from texelflow.gpu_delegate.targets.llvm.pool import MOST_POOL_THREADS

from ...frame.inference.backends import check_bf16
from ...names import local_name
from ...session.derived import check_hybrid
from ...verbs.precision import checked_budget, parse_hybrid, parse_memory, parse_precision
from ..measuring.run_rule import MOST_RUNS, RunRule
from .meaningless_flags import MEANINGLESS
from .model_aliases import ALIASES, MOST_SECONDS, Alias
from .model_inputs import NO_INPUTS, ModelInputs, parse_inputs

BenchBackend = Literal["gl", "cpu", "delegate"]
BACKENDS: tuple[BenchBackend, ...] = get_args(BenchBackend)

MOST_THREADS = 256
_MOST_S = 150.0  # as benchmark_model has it
DEFAULT_RUNS, DEFAULT_WARMUP = RunRule(100, 0.0, _MOST_S), RunRule(10, 0.0, _MOST_S)
_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class ModelBench:
    """What `bench model` is asked to do."""

    model: str = "selfie"
    backend: BenchBackend | None = None  # None: gl where the model runs there as a whole, else delegate
    runs: RunRule = DEFAULT_RUNS
    warmup: RunRule = DEFAULT_WARMUP
    duration_s: float | None = None
    threads: int | None = None  # on the CPU; None: as it has them otherwise
    cpu: Literal["native", "tflite"] = "tflite"
    per_op: bool = False
    compiling: CompileOptions = COMPILE_DEFAULTS
    delegate: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)  # further options of texelflow.GpuDelegate
    plot: Path | None = None
    force: bool = False  # the plot may be written over
    signature: str | None = None  # of the model; its first by default
    hybrid: Hybrid = "expanded"
    name: str = ""  # of the figures
    inputs: ModelInputs = NO_INPUTS
    xnnpack: bool = True  # may run what TensorFlow Lite runs
    full_delegation: bool = False  # is required
    dry_run: bool = False
    verbose: bool = False
    list_signatures: bool = False
    states: tuple[bool, bool] = (False, False)  # whether tensors are shown before the first run, and after the last
    memory_interval_ms: int | None = None  # of a watch on the memory; None for none
    profile_csv: Path | None = None
    outputs: Path | None = None
    runtime_info: Path | None = None
    notes: tuple[str, ...] = ()  # on flags that were passed over


_SERIALIZATION = ("serialization_dir", "model_token")  # nothing is serialized without both
_OF_DELEGATE = (
    "wait_type", "max_delegated_partitions", "min_nodes_per_partition", "inference_preference", *_SERIALIZATION
)  # fmt: skip
_BACKENDS_OF: Mapping[str, tuple[BenchBackend, ...]] = MappingProxyType(
    {  # the backends that know an option; the first of them is meant where no other option says which
        **dict.fromkeys((*_OF_DELEGATE, "enable_quant", "gpu_backend"), ("delegate",)),
        "cpu": ("cpu",),
        "threads": ("cpu", "delegate"),
        "xnnpack": ("cpu", "delegate"),
        "per_op": ("gl",),
        "unfused": ("gl",),
        "precision": ("gl", "delegate"),
        "memory": ("gl",),
        "planner": ("gl",),
        "compile_budget": ("gl", "delegate"),
    }
)

_USUAL_INTERVAL_MS = 50  # as benchmark_model has it
_INPUTS = "input_layer"
_OF_RUNS = ("duration", "per_op", "outputs", "state_after")
_TOGETHER = (  # an option, another without which it says nothing, and that one's name
    ("profile_csv", "per_op", "--enable_op_profiling=true"),
    ("profile_mode", "per_op", "--enable_op_profiling=true"),
    ("memory_interval_ms", "watches_memory", "--report_peak_memory_footprint=true"),
    ("exports_runtime", "runtime_info", "--model_runtime_info_output_file=FILE.json"),
    ("runtime_info", "exports_runtime", "--export_model_runtime_info=true"),
)
_NEUTRAL: Mapping[str, Any] = MappingProxyType(
    {"per_op": False, "unfused": False, "precision": "fp32", "memory": "arena"}
)


def parse_options(own: Mapping[str, Any], aliases: Mapping[str, str]) -> ModelBench:
    """What to measure, of the options that were given: own ones by name, aliases as texts. Raises UsageError."""
    given, names = (
        {name: value for name, value in own.items() if value is not None},
        {name: _flag(name) for name in own},
    )
    for alias in ALIASES:
        if (text := aliases.get(alias.name)) is None:
            continue
        value, flag = _read(alias, text), _shown(alias, text)
        if alias.option in given and given[alias.option] != value:
            raise UsageError(f"{names[alias.option]} {given[alias.option]} and {flag} contradict each other: drop one")
        if value is not None:
            given[alias.option], names[alias.option] = value, flag
    notes = tuple(_passed_over(name, aliases[name]) for name in MEANINGLESS if name in aliases)
    backend, warmup = _backend(given, names), given.get("warmup", DEFAULT_WARMUP.runs)
    check_counts(given.get("runs", DEFAULT_RUNS.runs), warmup)
    _check_alone(given, names)
    paces = given.get("delay_s", 0.0), given.get("per_s", 0.0)
    return ModelBench(
        model=given.get("model", "selfie"),
        backend=backend,
        runs=_rule(given, paces),
        warmup=RunRule(warmup, given.get("warmup_min_s", 0.0), given.get("max_s", _MOST_S), *paces),
        duration_s=_duration(given, names),
        threads=_threads(given),
        cpu=_cpu(given),
        per_op=given.get("per_op", False),
        compiling=_compiling(given),
        delegate=_delegate(given),
        plot=_plot(given),
        force=given.get("force", False),
        signature=given.get("signature"),
        hybrid=_hybrid(given, backend),
        name=given.get("name", ""),
        inputs=parse_inputs(
            {name.removeprefix(_INPUTS): text for name, text in given.items() if name.startswith(_INPUTS)}
        ),
        xnnpack=given.get("xnnpack", True),
        full_delegation=given.get("full_delegation", False),
        dry_run=given.get("dry_run", False),
        verbose=given.get("verbose", False),
        list_signatures=given.get("list_signatures", False),
        states=(given.get("state_before", False), given.get("state_after", False)),
        memory_interval_ms=given.get("memory_interval_ms", _USUAL_INTERVAL_MS) if given.get("watches_memory") else None,
        profile_csv=_path(given, "profile_csv"),
        outputs=_path(given, "outputs"),
        runtime_info=_path(given, "runtime_info"),
        notes=notes,
    )


def _passed_over(name: str, text: str) -> str:
    """What is said of a flag without a meaning where the run goes on. Raises UsageError where it does not."""
    flag = MEANINGLESS[name]
    if text not in flag.off and not flag.harmless:
        raise UsageError(f"--{name}={printable_name(text)} has no meaning here: {flag.reason}; leave it out")
    return f"--{name} has no meaning here: {flag.reason}"


def _path(given: Mapping[str, Any], name: str) -> Path | None:
    return Path(local_name(given[name])) if name in given else None


def _check_alone(given: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Raises UsageError for options that say nothing without another, and for those that exclude each other."""
    for option, needed, flag in _TOGETHER:
        if given.get(option) and not given.get(needed):
            raise UsageError(f"{names[option]} says nothing alone: add {flag}")
    if given.get("profile_csv") and given.get("profile_mode") == "stdout":
        raise UsageError(f"{names['profile_csv']} and {names['profile_mode']} contradict each other: drop one")
    if given.get("dry_run") and (other := next((name for name in _OF_RUNS if given.get(name)), None)):
        raise UsageError(f"{names['dry_run']} runs nothing: leave it or {names[other]} out")
    if "xnnpack" in given and _cpu(given) == "native":
        raise UsageError(f"{names['xnnpack']} is for TensorFlow Lite: leave it or --cpu native out")


def _flag(name: str) -> str:
    return "MODEL" if name == "model" else "--" + name.replace("_", "-")


def _shown(alias: Alias, text: str) -> str:
    return f"--{alias.name}={printable_name(text)}"


def _read(alias: Alias, text: str) -> Any:
    try:
        return alias.read(text)
    except ValueError as error:
        raise UsageError(f"{_shown(alias, text)}: {error} is needed") from None


def _backend(given: Mapping[str, Any], names: Mapping[str, str]) -> BenchBackend | None:
    """The backend that was asked for, by its name or by an option that only one has."""
    said: str | None = given.get("backend")
    if said is not None and said not in BACKENDS:
        needed = f"{', '.join(BACKENDS[:-1])} or {BACKENDS[-1]}"
        raise UsageError(f"--backend {said}: {needed} is needed here{meant(said, BACKENDS)}")
    uses_gpu = given.get("uses_gpu")
    if said is not None and uses_gpu is not None and uses_gpu != (said != "cpu"):
        raise UsageError(f"--backend {said} and {names['uses_gpu']} contradict each other: drop one")
    if said is None and uses_gpu is not None:
        said = "delegate" if uses_gpu else "cpu"
    chosen = next((backend for backend in BACKENDS if backend == said), None)
    for option, usual in _BACKENDS_OF.items():
        if option not in given or given[option] == _NEUTRAL.get(option):
            continue
        known: tuple[BenchBackend, ...] = ("cpu",) if _is_bf16(given, option) else usual
        if chosen is None and (len(known) == 1 or option in ("threads", "xnnpack")):
            if option == "threads":
                raise UsageError(f"{names[option]} is for the CPU: add --backend cpu or --backend delegate")
            chosen = known[0]
        if chosen is not None and chosen not in known:
            flag = f"{names[option]} {given[option]}" if option == "precision" else names[option]
            raise UsageError(_not_for(option, flag, known, chosen))
    return chosen


def _is_bf16(given: Mapping[str, Any], option: str) -> bool:
    """Whether an option is the precision that only the CPU's own code has."""
    return option == "precision" and given[option] == "bf16"


def _not_for(option: str, flag: str, known: tuple[BenchBackend, ...], chosen: BenchBackend) -> str:
    if option == "per_op" and chosen == "cpu":
        return f"{flag}: TensorFlow Lite tells Python no times of single operators; leave it or --backend cpu out"
    return f"{flag} is for --backend {' or '.join(known)}, not for {chosen}"


def check_counts(runs: int, warmup: int) -> None:
    """Raises UsageError for numbers of runs that make no sense."""
    for name, value, least in (("runs", runs, 1), ("warmup", warmup, 0)):
        if not least <= value <= MOST_RUNS:
            raise UsageError(f"--{name} {value}: it goes from {least} to {MOST_RUNS}")


def _rule(given: Mapping[str, Any], paces: tuple[float, float]) -> RunRule:
    """When the runs that count begin and end."""
    if "duration" in given:
        return RunRule(1, given["duration"], given["duration"], *paces)
    least_s, most_s = given.get("min_s", 0.0), given.get("max_s", _MOST_S)
    if least_s > most_s:
        raise UsageError(f"--min_secs={least_s:g} is more than --max_secs={most_s:g}")
    return RunRule(given.get("runs", DEFAULT_RUNS.runs), least_s, most_s, *paces)


def _duration(given: Mapping[str, Any], names: Mapping[str, str]) -> float | None:
    seconds: float | None = given.get("duration")
    if seconds is None:
        return None
    if not 0 < seconds <= MOST_SECONDS:
        raise UsageError(f"--duration {seconds:g}: seconds from just above 0 to {MOST_SECONDS:g} are needed")
    if other := next((name for name in ("runs", "min_s", "max_s") if name in given), None):
        raise UsageError(f"--duration {seconds:g} and {names[other]} contradict each other: drop one")
    return seconds


def _compiling(given: Mapping[str, Any]) -> CompileOptions:
    precision = parse_precision(given.get("precision", "fp32"))
    check_bf16(precision, _cpu(given) == "native", "add --cpu native")
    return CompileOptions(
        fuse=not given.get("unfused", False),
        precision=precision,
        memory=parse_memory(given.get("memory", "arena"), given.get("planner", "")),
        compile_budget_s=checked_budget(given.get("compile_budget", COMPILE_BUDGET_S)),
    )


def _hybrid(given: Mapping[str, Any], backend: BenchBackend | None) -> Hybrid:
    found = parse_hybrid(given.get("hybrid", "expanded"))
    check_hybrid(found, backend, _cpu(given))
    return found


def _threads(given: Mapping[str, Any]) -> int | None:
    threads: int | None = given.get("threads")
    most = MOST_POOL_THREADS if given.get("cpu") == "native" else MOST_THREADS
    if threads is not None and not 1 <= threads <= most:
        raise UsageError(f"--threads {threads}: it goes from 1 to {most}")
    return threads


def _cpu(given: Mapping[str, Any]) -> Literal["native", "tflite"]:
    engine: str = given.get("cpu", "tflite")
    if engine not in ("native", "tflite"):
        raise UsageError(f"--cpu {engine}: native or tflite is needed here{meant(engine, ('native', 'tflite'))}")
    return "native" if engine == "native" else "tflite"


def _delegate(given: Mapping[str, Any]) -> Mapping[str, Any]:
    options = {name: given[name] for name in _OF_DELEGATE if name in given}
    if "enable_quant" in given:
        options["experimental_flags"] = ("enable_quant",) if given["enable_quant"] else ()
    if given.keys() >= {*_SERIALIZATION}:
        options["experimental_flags"] = (*options.get("experimental_flags", ("enable_quant",)), "enable_serialization")
    return MappingProxyType(options)


def _plot(given: Mapping[str, Any]) -> Path | None:
    path: Path | None = given.get("plot")
    if path is not None and "duration" not in given:
        raise UsageError("--plot draws milliseconds over time: add --duration SECONDS")
    return path

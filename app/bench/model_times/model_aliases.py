"""The flags of TensorFlow Lite's benchmark_model, and the options of `bench model` that they stand for.

Help needs this table at once, so it imports next to nothing.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand

from .meaningless_flags import MEANINGLESS

MOST_SECONDS = 3600.0
WAIT_TYPES = ("passive", "active", "do_not_wait", "aggressive")
_MOST_DIGITS = 12
_TRUTHS = ("true", "false", "1", "0")
_MOST_PER_S = 1e6
PROFILE_MODES = ("stdout", "csv")
_PANEL = "The same by names of TensorFlow Lite's benchmark_model, as --num_runs=50; docs/bench_model.md has more"


@dataclass(frozen=True)
class Alias:
    """A flag of benchmark_model, and the option that it is another name of."""

    name: str
    option: str
    read: Callable[[str], Any]  # raises ValueError with what is wanted
    help: str

    @property
    def is_switch(self) -> bool:
        """Whether it may stand alone, and means true then."""
        return self.read in _SWITCHES


def _whole(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if len(text) > _MOST_DIGITS or not text.removeprefix("-").isdecimal() or int(text) < least:
            raise ValueError(f"a whole number from {least} on")
        return int(text)

    return read


def _or_default(text: str) -> int | None:
    """benchmark_model's numbers of threads, partitions and nodes: 0 and -1 leave it as it is."""
    return _whole(-1)(text) if text not in ("0", "-1") else None


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= MOST_SECONDS:
        raise ValueError(f"seconds from 0 to {MOST_SECONDS:g}")
    return value


def _pause(text: str) -> float:
    """benchmark_model's seconds between runs: none where they are not positive."""
    return 0.0 if text.startswith("-") and _is_number(text) else _seconds(text)


def _frequency(text: str) -> float:
    """Runs in a second; 0 where they are not positive."""
    value = float(text) if _is_number(text) else math.nan
    if not value <= _MOST_PER_S:
        raise ValueError(f"runs in a second, at most {_MOST_PER_S:g},")
    return max(0.0, value)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _file(text: str) -> str:
    if not text:
        raise ValueError("a name")
    return text


def _profile_mode(text: str) -> str:
    if text not in PROFILE_MODES:
        raise ValueError(" or ".join(PROFILE_MODES))
    return text


def _truth(text: str) -> bool:
    if text not in _TRUTHS:
        raise ValueError("true or false")
    return text in ("true", "1")


def _precision(text: str) -> str:
    return "fp16" if _truth(text) else "fp32"


def _halves(text: str) -> str | None:
    return "fp16" if _truth(text) else None


def _opengl(text: str) -> str:
    if text not in ("gl", ""):
        raise ValueError("gl (OpenGL, the only one here)")
    return "gl"


def _wait_type(text: str) -> str:
    """As GpuDelegate spells it."""
    if text not in WAIT_TYPES:
        raise ValueError(f"{', '.join(WAIT_TYPES[:-1])} or {WAIT_TYPES[-1]}")
    return text.replace("_", "-")


def _sustained(text: str) -> str:
    return "sustained_speed" if _truth(text) else "fast_single_answer"


_SWITCHES = (_truth, _precision, _halves, _sustained)

ALIASES = (
    Alias("graph", "model", str, "MODEL."),
    Alias("signature_to_run_for", "signature", str, "--signature."),
    Alias("list_signatures", "list_signatures", _truth, "true: name the model's signatures, and stop."),
    Alias("input_layer", "input_layer", str, "Names of your own for all inputs, in their order: NAME,NAME."),
    Alias("input_layer_shape", "input_layer_shape", str, "Their shapes: 1,224,224,3:1,20."),
    Alias("input_layer_value_range", "input_layer_value_range", str, "Whole numbers for some: NAME,LOW,HIGH:..."),
    Alias("input_layer_value_files", "input_layer_value_files", str, "Files with their bytes: NAME:FILE,... (:: is :)"),
    Alias("num_runs", "runs", _whole(1), "--runs; more if --min_secs asks for it."),
    Alias("min_secs", "min_s", _seconds, "Runs go on for so many seconds."),
    Alias("max_secs", "max_s", _seconds, "Runs, and those of the warm-up, end then; 150."),
    Alias("warmup_runs", "warmup", _whole(0), "--warmup."),
    Alias("warmup_min_secs", "warmup_min_s", _seconds, "The warm-up goes on for so many."),
    Alias("run_delay", "delay_s", _pause, "Seconds between runs."),
    Alias("run_frequency", "per_s", _frequency, "Runs in a second, if they are fast enough; no --run_delay then."),
    Alias("num_threads", "threads", _or_default, "--threads."),
    Alias("use_xnnpack", "xnnpack", _truth, "true: --backend cpu, as it is; false: without XNNPACK."),
    Alias("use_gpu", "uses_gpu", _truth, "true: --backend delegate; false: cpu."),
    Alias("require_full_delegation", "full_delegation", _truth, "true: fail where TensorFlow Lite runs some."),
    Alias("allow_fp16", "precision", _halves, "true: --precision fp16."),
    Alias("gpu_precision_loss_allowed", "precision", _precision, "true: --precision fp16."),
    Alias("gpu_experimental_enable_quant", "enable_quant", _truth, "Whether quantized models may run on the GPU."),
    Alias("gpu_inference_for_sustained_speed", "inference_preference", _sustained, "true: compiled for many runs."),
    Alias("gpu_backend", "gpu_backend", _opengl, "gl, which is all there is."),
    Alias("gpu_wait_type", "wait_type", _wait_type, f"{', '.join(WAIT_TYPES)}."),
    Alias("max_delegated_partitions", "max_delegated_partitions", _or_default, "Partitions on the GPU at most."),
    Alias("min_nodes_per_partition", "min_nodes_per_partition", _or_default, "Operators of one at least."),
    Alias("delegate_serialize_dir", "serialization_dir", str, "Where programs are kept, with a token."),
    Alias("delegate_serialize_token", "model_token", str, "The model's name there."),
    Alias("enable_op_profiling", "per_op", _truth, "--per-op."),
    Alias("profiling_output_csv_file", "profile_csv", _file, "Its table as a .csv file."),
    Alias("op_profiling_output_mode", "profile_mode", _profile_mode, f"{', '.join(PROFILE_MODES)}."),
    Alias("op_profiling_output_file", "profile_csv", _file, "The same file."),
    Alias("report_peak_memory_footprint", "watches_memory", _truth, "true: watch the memory of the process."),
    Alias("memory_footprint_check_interval_ms", "memory_interval_ms", _whole(1), "How often; 50."),
    Alias("dry_run", "dry_run", _truth, "true: make all ready, and run nothing."),
    Alias("verbose", "verbose", _truth, "true: print what every option is."),
    Alias("print_preinvoke_state", "state_before", _truth, "true: print all tensors before the first run,"),
    Alias("print_postinvoke_state", "state_after", _truth, "and after the last."),
    Alias("output_filepath", "outputs", _file, "The bytes of all outputs, one behind the other, as a file."),
    Alias("export_model_runtime_info", "exports_runtime", _truth, "true: write what runs where,"),
    Alias("model_runtime_info_output_file", "runtime_info", _file, "to this .json file."),
    Alias("benchmark_name", "name", str, "A name for the figures."),
)  # fmt: skip


class BenchmarkCommand(TyperCommand):
    """Takes benchmark_model's flags with dashes, too, and its switches without a value."""

    def parse_args(self, context: Any, arguments: list[str]) -> list[str]:
        """See click.Command."""
        return super().parse_args(context, list(as_declared(arguments)))


_SWITCH_NAMES = {alias.name for alias in ALIASES if alias.is_switch}
_NAMES = {alias.name for alias in ALIASES} | {*MEANINGLESS}


def as_declared(arguments: Sequence[str]) -> Iterator[str]:
    """--num-runs 5 --dry_run as --num_runs 5 --dry_run=true; what stands behind -- is left as it is."""
    for number, argument in enumerate(arguments):
        if argument == "--":
            yield from arguments[number:]
            return
        flag, equals, text = argument.partition("=")
        name = flag.removeprefix("--").replace("-", "_")
        if not flag.startswith("--") or name not in _NAMES:
            yield argument
            continue
        following = arguments[number + 1] if number + 1 < len(arguments) else "--"
        is_alone = following not in _TRUTHS if name in _SWITCH_NAMES else following.startswith("--")
        if not equals and is_alone and (name in _SWITCH_NAMES or name in MEANINGLESS):
            equals, text = "=", "true"
        yield f"--{name}{equals}{text}"


def alias_options() -> list[inspect.Parameter]:
    """These flags, for with_options: each a text; those without a meaning are not shown."""
    return [*map(_option, ALIASES), *map(_hidden, MEANINGLESS)]


def _option(alias: Alias) -> inspect.Parameter:
    shown = typer.Option(None, f"--{alias.name}", metavar="VALUE", help=alias.help, rich_help_panel=_PANEL)
    return inspect.Parameter(alias.name, inspect.Parameter.KEYWORD_ONLY, default=shown, annotation=str | None)


def _hidden(name: str) -> inspect.Parameter:
    option = typer.Option(None, f"--{name}", hidden=True)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=str | None)

"""The flags of TensorFlow Lite's benchmark_model, and the options of `bench model` that they stand for.

Help needs this table at once, so it imports next to nothing.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import typer

MOST_SECONDS = 3600.0
WAIT_TYPES = ("passive", "active", "do_not_wait", "aggressive")
_MOST_DIGITS = 12
_PANEL = "The same by names of TensorFlow Lite's benchmark_model, as --num_runs=50"


@dataclass(frozen=True)
class Alias:
    """A flag of benchmark_model, and the option that it is another name of."""

    name: str
    option: str
    read: Callable[[str], Any]  # raises ValueError with what is wanted
    help: str


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


def _truth(text: str) -> bool:
    if text not in ("true", "false", "1", "0"):
        raise ValueError("true or false")
    return text in ("true", "1")


def _precision(text: str) -> str:
    return "fp16" if _truth(text) else "fp32"


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


ALIASES = (
    Alias("graph", "model", str, "MODEL."),
    Alias("signature_to_run_for", "signature", str, "--signature."),
    Alias("num_runs", "runs", _whole(1), "--runs; more if --min_secs asks for it."),
    Alias("min_secs", "min_s", _seconds, "Runs go on for so many seconds."),
    Alias("max_secs", "max_s", _seconds, "Runs, and those of the warm-up, end then; 150."),
    Alias("warmup_runs", "warmup", _whole(0), "--warmup."),
    Alias("warmup_min_secs", "warmup_min_s", _seconds, "The warm-up goes on for so many."),
    Alias("num_threads", "threads", _or_default, "--threads."),
    Alias("use_gpu", "uses_gpu", _truth, "true: --backend delegate; false: cpu."),
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
)  # fmt: skip


def alias_options() -> list[inspect.Parameter]:
    """These flags, for with_options: each a text."""
    return [_option(alias) for alias in ALIASES]


def _option(alias: Alias) -> inspect.Parameter:
    shown = typer.Option(None, f"--{alias.name}", metavar="VALUE", help=alias.help, rich_help_panel=_PANEL)
    return inspect.Parameter(alias.name, inspect.Parameter.KEYWORD_ONLY, default=shown, annotation=str | None)

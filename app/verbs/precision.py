"""Parses options of verbs without settings.

--precision, --hybrid, --memory, --planner, --preprocessing, --compile-budget, --cpu and --threads.
"""

from typing import TypeVar, get_args

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.wording import meant
from texelflow.gpu_delegate.model.graph import Hybrid
from texelflow.gpu_delegate.model.layout import PRECISIONS, Precision
from texelflow.gpu_delegate.plan.memory.memory_options import MemoryOptions

from ..frame.inference.backends import CpuChoice
from ..picture.preprocess import Preprocessing
from ..session.derived import asked_memory
from ..settings.flags import flag_of
from ..settings.settings import Settings, with_values

_Name = TypeVar("_Name", bound=str)


def parse_precision(text: str) -> Precision:
    """fp32, fp16, fp16-arithmetic or bf16. Raises UsageError for anything else."""
    return _one_of("--precision", text, PRECISIONS)


def parse_hybrid(text: str) -> Hybrid:
    """expanded or reference. Raises UsageError for anything else."""
    known: tuple[Hybrid, ...] = get_args(Hybrid)
    return _one_of("--hybrid", text, known)


def _one_of(option: str, text: str, known: tuple[_Name, ...]) -> _Name:
    for name in known:
        if text == name:
            return name
    raise UsageError(f"{option} {text}: one of {', '.join(known)} is needed{meant(text, known)}")


def checked_budget(compile_budget_s: float) -> float:
    """The value itself, if the setting takes it. Raises UsageError."""
    return with_values(Settings(), {"compile_budget": compile_budget_s}, flag_of).compile_budget


def parse_memory(mode: str, planner: str, reorder: bool = False) -> MemoryOptions:
    """What they ask for. Raises UsageError for what there is not."""
    values = {"memory": mode, "planner": planner, "reorder": reorder}
    return asked_memory(with_values(Settings(), values, flag_of))


def parse_preprocessing(text: str) -> Preprocessing:
    """auto or plain. Raises UsageError for anything else."""
    return with_values(Settings(), {"preprocessing": text}, flag_of).preprocessing


def parse_cpu(engine: str | None, threads: int | None) -> CpuChoice | None:
    """What is asked of the CPU; None where nothing is. Raises UsageError."""
    given = {name: value for name, value in (("cpu", engine), ("threads", threads)) if value is not None}
    if not given:
        return None
    settings = with_values(Settings(), given, flag_of)
    return CpuChoice(settings.cpu, settings.threads)


def backend_for(backend: str | None, cpu: CpuChoice | None) -> str:
    """gl where nothing else is said, the CPU where something is asked of it. Raises UsageError for a contradiction."""
    if cpu is not None and backend not in (None, "cpu"):
        raise UsageError(f"--cpu and --threads are for the CPU: leave them or --backend {backend} out")
    return backend or ("gl" if cpu is None else "cpu")

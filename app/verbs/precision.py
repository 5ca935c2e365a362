"""--precision, --preprocessing, --compile-budget of verbs without settings go in; what is meant by them comes out."""

from typing import get_args

from texelflow.gpu_delegate.errors import UsageError
from texelflow.gpu_delegate.layout import Precision
from texelflow.gpu_delegate.wording import meant

from ..picture.preprocess import Preprocessing
from ..settings.flags import flag_of
from ..settings.settings import Settings, with_values


def parse_precision(text: str) -> Precision:
    """fp32, fp16 or fp16-arithmetic. Raises UsageError for anything else."""
    known: tuple[Precision, ...] = get_args(Precision)
    for precision in known:
        if text == precision:
            return precision
    raise UsageError(f"--precision {text}: one of {', '.join(known)} is needed{meant(text, known)}")


def checked_budget(compile_budget_s: float) -> float:
    """The value itself, if the setting takes it. Raises UsageError."""
    return with_values(Settings(), {"compile_budget": compile_budget_s}, flag_of).compile_budget


def parse_preprocessing(text: str) -> Preprocessing:
    """auto or plain. Raises UsageError for anything else."""
    return with_values(Settings(), {"preprocessing": text}, flag_of).preprocessing

"""The text of --precision goes in; the engine's Precision comes out."""

from typing import get_args

from texelflow.gpu_delegate.errors import UsageError
from texelflow.gpu_delegate.layout import Precision


def parse_precision(text: str) -> Precision:
    """fp32 or fp16. Raises UsageError for anything else."""
    known: tuple[Precision, ...] = get_args(Precision)
    for precision in known:
        if text == precision:
            return precision
    raise UsageError(f"--precision {text}: {' or '.join(known)} is needed")

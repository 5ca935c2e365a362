"""Decides which ways of running a model are tried, in which order: the first one that works is taken."""

from dataclasses import dataclass

from ..tuning.way_costs import WayName
from .interpreter_options import InterpreterBackend


@dataclass(frozen=True)
class ChoiceFacts:
    """What a choice depends on."""

    backend: InterpreterBackend  # that was asked for
    needs_tflite: str = ""  # an option that only TensorFlow Lite can follow
    has_custom_ops: bool = False  # functions of the caller's, which delegates alone can run


def ways_to_try(facts: ChoiceFacts) -> tuple[WayName, ...]:
    """In this order, until one works."""
    if facts.needs_tflite:
        return ("tflite",)
    if facts.backend == "auto":
        return ("native", "native parts", "tflite") if facts.has_custom_ops else ("native", "tflite")
    by_backend: dict[InterpreterBackend, tuple[WayName, ...]] = {
        "native": ("native", "native parts"),
        "gl": ("gl", "gl parts"),
        "tflite": ("tflite",),
    }
    return by_backend[facts.backend]

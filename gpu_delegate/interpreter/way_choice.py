"""The ways of running a model that a backend which was asked for means; "auto" is auto_way.py's."""

from ..tuning.way_costs import WayName
from .interpreter_options import InterpreterBackend


def ways_of(backend: InterpreterBackend, needs_tflite: str = "") -> tuple[WayName, ...]:
    """To be tried in this order; none where the quickest is to be found.

    `needs_tflite` names an option that only TensorFlow Lite can follow.
    """
    if needs_tflite or backend == "tflite":
        return ("tflite",)
    if backend == "auto":
        return ()
    return ("native", "native parts") if backend == "native" else ("gl", "gl parts")

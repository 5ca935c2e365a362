"""Finds the installed package that TensorFlow Lite's interpreter comes from."""

import contextlib
import importlib
from typing import Any

from ..base.errors import DeviceError

OLDER, NEWER = "tflite_runtime.interpreter", "ai_edge_litert.interpreter"


def load_interpreter_module(newer: bool = False) -> Any:
    """The module with TensorFlow Lite's Interpreter: tflite-runtime's, else ai-edge-litert's. Raises DeviceError.

    `newer`, the other way round: its XNNPACK is twice as fast with 8-bit integers, and its hybrid kernels add the zero
    point behind the rounding, which is what `--hybrid reference` follows.
    """
    for name in (NEWER, OLDER) if newer else (OLDER, NEWER):
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    raise DeviceError("TensorFlow Lite is not installed; `pip install ai-edge-litert` adds the CPU path")

"""The module that TensorFlow Lite's interpreter comes from comes out, of whichever package is installed."""

import contextlib
import importlib
from typing import Any

from ..errors import DeviceError


def load_interpreter_module() -> Any:
    """The module with TensorFlow Lite's Interpreter: tflite-runtime's, else ai-edge-litert's. Raises DeviceError."""
    for name in ("tflite_runtime.interpreter", "ai_edge_litert.interpreter"):
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    raise DeviceError("TensorFlow Lite is not installed; `pip install ai-edge-litert` adds the CPU path")

"""Calls a function with the context that a delegate gets from TensorFlow Lite."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from texelflow.gpu_delegate.cpu.reference import load_interpreter_module
from texelflow.gpu_delegate.delegate.structs import (
    ALLOWS_DYNAMIC_TENSORS,
    OK,
    PrepareFunction,
    TfLiteContext,
    TfLiteDelegate,
    context_at,
)

_Found = TypeVar("_Found")


class ContextVisitor:
    """A delegate that takes no operator."""

    def __init__(self, visit: Callable[[TfLiteContext], Any]) -> None:
        self._visit = visit
        self.found: list[Any] = []
        self._struct = TfLiteDelegate(Prepare=PrepareFunction(self._prepare), flags=ALLOWS_DYNAMIC_TENSORS)

    def _get_native_delegate_pointer(self) -> int:
        return ctypes.addressof(self._struct)

    def _prepare(self, context: int, _: int) -> int:
        try:
            self.found.append(self._visit(context_at(context)))
        except Exception as error:
            self.found.append(error)
        return OK


def visit_context(model: bytes | Path, visit: Callable[[TfLiteContext], _Found], runtime: Any = None) -> _Found:
    """What the function returns or raises, called in the constructor of an interpreter, of that module if any."""
    visitor = ContextVisitor(visit)
    given: dict[str, Any] = {"model_content": model} if isinstance(model, bytes) else {"model_path": str(model)}
    (runtime or load_interpreter_module()).Interpreter(**given, experimental_delegates=[visitor])
    found, *_ = visitor.found  # of the first graph
    if isinstance(found, Exception):
        raise found
    result: _Found = found
    return result

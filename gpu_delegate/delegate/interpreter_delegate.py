"""The delegate of an interpreter that the engine itself makes, in this process or in one of its own."""

import contextlib
from collections.abc import Mapping
from typing import Any

from ..base.errors import DeviceError
from ..cpu.delegation import AppliedDelegate, DelegateMaker
from ..cpu.interpreter_child import MakeDelegate, serve
from ..targets.gl.context import Context, open_context
from .delegate import GpuDelegate

_PROGRAM = f"from {__name__} import serve_delegated; serve_delegated()"


def gpu_delegate(arguments: Mapping[str, Any]) -> DelegateMaker:
    """A GpuDelegate with these arguments, for a Reference."""

    def make(given: Mapping[str, Any]) -> AppliedDelegate:
        return GpuDelegate(quiet=True, **given)

    return DelegateMaker(arguments, make, _PROGRAM)


def serve_delegated() -> None:
    """As serve() of interpreter_child.py, with a GpuDelegate and a context of its own."""
    serve(_with_context)


def _with_context() -> MakeDelegate:
    """Without a context where there is no OpenGL, of which the delegate tells."""
    context: Context | None = None
    with contextlib.suppress(DeviceError):
        context = open_context()

    def make(given: Mapping[str, Any]) -> AppliedDelegate:
        return GpuDelegate(context=context.mgl if context else None, quiet=True, **given)

    return make

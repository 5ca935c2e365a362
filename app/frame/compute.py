"""A choice of gl, cpu or auto goes in; where the network runs, and the context to draw with, come out."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from texelflow.gpu_delegate import debug
from texelflow.gpu_delegate.context import DRAWING, Context, open_context, too_old
from texelflow.gpu_delegate.errors import DeviceError, UsageError
from texelflow.gpu_delegate.layout import Precision

from ..console import Console

Backend = Literal["gl", "cpu"]


@dataclass(frozen=True)
class ComputeBackend:
    """Where the network runs, and the context to draw with; there is none if nothing needs one."""

    backend: Backend
    context: Context | None

    @property
    def renderer(self) -> str:
        """The renderer that does the work, for tables."""
        drawn = self.context.renderer if self.context else "nothing is drawn"
        return drawn if self.backend == "gl" else f"TensorFlow Lite on the CPU; {drawn}"

    @property
    def gl_version(self) -> str | None:
        """The API with its version that draws, and perhaps computes."""
        return self.context.gl_version if self.context else None


def delegate_options(precision: Precision, compile_budget_s: float) -> Mapping[str, Any]:
    """The arguments of GpuDelegate that mean the same as those of a program that runs a whole model."""
    return {"is_precision_loss_allowed": precision != "fp32", "compile_budget_s": compile_budget_s}


@contextlib.contextmanager
def open_compute(choice: str, needs_picture: bool, console: Console) -> Iterator[ComputeBackend]:
    """Decide by the choice and by what OpenGL is here; `auto` says in one line why it takes the CPU.

    Raises UsageError for another choice, DeviceError where OpenGL is needed and missing.
    """
    _check_choice(choice)
    with contextlib.ExitStack() as stack:
        if choice == "gl" or (choice == "auto" and _is_one_worth_it(console)):
            yield _told(ComputeBackend("gl", stack.enter_context(open_context())), choice)
        else:
            yield _told(ComputeBackend("cpu", stack.enter_context(_open_to_draw()) if needs_picture else None), choice)


def compute_in(context: Context, choice: str, console: Console) -> ComputeBackend:
    """The same decision for a context that is open, a window's. Raises UsageError, DeviceError."""
    _check_choice(choice)
    if choice == "gl" and not context.can_compute:
        raise DeviceError(f"{too_old(context.gl, context.renderer)}; update the driver or use --backend cpu")
    computes = choice == "gl" or (choice == "auto" and _is_worth_it(context, console))
    return _told(ComputeBackend("gl" if computes else "cpu", context), choice)


def _told(compute: ComputeBackend, choice: str) -> ComputeBackend:
    debug.tell(debug.RUN, f"debug: --backend {choice} is {compute.backend} here: {compute.renderer}")
    return compute


def _check_choice(choice: str) -> None:
    if choice not in ("gl", "cpu", "auto"):
        raise UsageError(f"--backend {choice}: gl, cpu or auto is needed")


def _is_one_worth_it(console: Console) -> bool:
    """Whether this machine has OpenGL worth running networks on; if not, one line says why."""
    try:
        with open_context() as context:
            return _is_worth_it(context, console)
    except DeviceError as error:
        console.note_once(f"{_reason(error)}: the network runs on the CPU")
        return False


def _is_worth_it(context: Context, console: Console) -> bool:
    """Whether a context is a GPU's and computes; if not, one line says why."""
    if not context.can_compute:
        console.note_once(f"{too_old(context.gl, context.renderer)}: the network runs on the CPU")
        return False
    if context.is_software:
        failed = "".join(f"; {each.name}: {each.failure.why}" for each in context.tried if each.failure)
        console.note_once(
            f"OpenGL is a software renderer here ({context.renderer}{failed}): the network runs on the CPU; "
            "--backend gl overrides this"
        )
    return not context.is_software


def _open_to_draw() -> Context:
    try:
        return open_context(DRAWING)
    except DeviceError as error:
        raise DeviceError(f"{_reason(error)}; pictures need it, --masks and --log work without") from None


def _reason(error: DeviceError) -> str:
    """An error of open_context without its advice, which does not fit here."""
    return str(error).partition(";")[0]

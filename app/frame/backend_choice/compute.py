"""Decides where the network runs, by what is asked for (gl, cpu or auto), and opens the context to draw with.

auto takes the GPU that is found unless the CPU's own code makes masks sooner here (backend_times.py); where there is no
such code, it takes a GPU that is none of software.
"""

import contextlib
from collections.abc import Callable, Iterator

from texelflow.gpu_delegate.base import debug
from texelflow.gpu_delegate.base.errors import DeviceError, UsageError
from texelflow.gpu_delegate.targets.gl.context import DRAWING, Context, open_context, too_old

from ...console import Console
from ...models.model_loading import FrameModel
from ..inference.backends import ComputeBackend, ComputeChoice, check_bf16
from .auto_choice import auto_backend, chosen_by_hand
from .backend_times import BackendTimes, backend_times

ContextOpener = Callable[[], contextlib.AbstractContextManager[Context]]


@contextlib.contextmanager
def open_compute(
    choice: ComputeChoice,
    model: FrameModel,
    needs_picture: bool,
    console: Console,
    opener: ContextOpener = open_context,
) -> Iterator[ComputeBackend]:
    """Decide by the choice and by what OpenGL is here; `auto` says in one line why it takes the CPU.

    `opener` opens the context to compute in.

    Raises UsageError for another choice, DeviceError where OpenGL is needed and missing.
    """
    _check_choice(choice)
    with contextlib.ExitStack() as stack:
        if choice.backend == "gl" or (choice.backend == "auto" and _is_one_worth_it(choice, model, console, opener)):
            yield _told(ComputeBackend("gl", stack.enter_context(opener()), choice.cpu), choice)
        else:
            context = stack.enter_context(_open_to_draw()) if needs_picture else None
            yield _told(ComputeBackend("cpu", context, choice.cpu), choice)


def compute_in(context: Context, choice: ComputeChoice, model: FrameModel, console: Console) -> ComputeBackend:
    """The same decision for a context that is open, a window's. Raises UsageError, DeviceError."""
    _check_choice(choice)
    if choice.backend == "gl" and not context.can_compute:
        raise DeviceError(f"{too_old(context.gl, context.renderer)}; update the driver or use --backend cpu")
    computes = choice.backend == "gl"
    if choice.backend == "auto":
        computes = _is_worth_it(context, choice, model, console)
    return _told(ComputeBackend("gl" if computes else "cpu", context, choice.cpu), choice)


def _told(compute: ComputeBackend, choice: ComputeChoice) -> ComputeBackend:
    debug.tell(debug.RUN, f"debug: --backend {choice.backend} is {compute.backend} here; drawn by: {compute.drawn_by}")
    return compute


def _check_choice(choice: ComputeChoice) -> None:
    if choice.backend not in ("gl", "cpu", "auto"):
        raise UsageError(f"--backend {choice.backend}: gl, cpu or auto is needed")
    check_bf16(choice.precision, choice.backend == "cpu", "add --backend cpu")


def _is_one_worth_it(choice: ComputeChoice, model: FrameModel, console: Console, opener: ContextOpener) -> bool:
    """Whether this machine has OpenGL worth running networks on; if not, one line says why."""
    by_hand = chosen_by_hand()
    try:
        with opener() as context:
            return _is_worth_it(context, choice, model, console)
    except DeviceError as error:
        if by_hand == "gl":
            raise
        console.note_once(f"{_reason(error)}: the network runs on the CPU")
        return False


def _is_worth_it(context: Context, choice: ComputeChoice, model: FrameModel, console: Console) -> bool:
    """Whether a context computes, and sooner than the CPU; if not, one line says why."""
    if not context.can_compute:
        console.note_once(f"{too_old(context.gl, context.renderer)}: the network runs on the CPU")
        return False
    by_hand = chosen_by_hand()
    times = None if by_hand else backend_times(context, model, choice)
    taken = auto_backend(context.is_software, times, by_hand)
    if taken == "cpu":
        console.note_once(f"{_why_not(context, times)}: the network runs on the CPU; --backend gl overrides this")
    return taken == "gl"


def _why_not(context: Context, times: BackendTimes | None) -> str:
    """What speaks against a context."""
    measured = f", {times.line}" if times and times.cpu_ms is not None else ""
    if not context.is_software:
        return f"{context.renderer}{measured}"
    failed = "".join(f"; {each.name}: {each.failure.why}" for each in context.tried if each.failure)
    return f"OpenGL is a software renderer here ({context.renderer}{failed}){measured}"


def _open_to_draw() -> Context:
    try:
        return open_context(DRAWING)
    except DeviceError as error:
        raise DeviceError(f"{_reason(error)}; pictures need it, --masks and --log work without") from None


def _reason(error: DeviceError) -> str:
    """An error of open_context without its advice, which does not fit here."""
    return str(error).partition(";")[0]

"""Decides where the network runs, by what is asked for (gl, cpu or auto), and opens the context to draw with.

auto takes the GPU that is found unless the CPU's own code makes pictures sooner here, or masks and findings if
nothing is drawn (backend_times.py); where there is no such code, it takes a GPU that is none of software.
"""

import contextlib
from collections.abc import Callable, Iterator

from texelflow.gpu_delegate.base import debug
from texelflow.gpu_delegate.base.errors import DeviceError, UsageError
from texelflow.gpu_delegate.targets.gl.context import DRAWING, Context, open_context, too_old
from texelflow.gpu_delegate.targets.llvm.compiler import available

from ...console import Console
from ...models.finding_loading import ShownModel
from ..inference.backends import ComputeBackend, ComputeChoice, check_bf16
from ..textures.native_pictures import NativePictures
from .auto_choice import auto_backend, chosen_by_hand
from .backend_times import backend_times, frames_become

ContextOpener = Callable[[], contextlib.AbstractContextManager[Context]]


@contextlib.contextmanager
def open_compute(
    choice: ComputeChoice,
    model: ShownModel,
    needs_picture: bool,
    console: Console,
    opener: ContextOpener = open_context,
    has_overlay: bool = False,
) -> Iterator[ComputeBackend]:
    """Decide by the choice and by what OpenGL is here; `auto` says in one line why it takes the CPU.

    The CPU draws pictures by itself, without a context, unless they have an overlay. `opener` opens the context to
    compute in.

    Raises UsageError for another choice, DeviceError where OpenGL is needed and missing.
    """
    _check_choice(choice)
    with contextlib.ExitStack() as stack:
        if choice.backend == "gl" or (
            choice.backend == "auto" and _is_one_worth_it(choice, model, needs_picture, console, opener)
        ):
            yield _told(ComputeBackend("gl", stack.enter_context(opener()), choice.cpu), choice)
        else:
            natively = needs_picture and _draws_natively()
            needs_opengl = has_overlay if natively else needs_picture
            context = stack.enter_context(_open_to_draw(natively)) if needs_opengl else None
            compute = _on_cpu(choice, context, natively)
            stack.callback(compute.end_drawing)
            yield _told(compute, choice)


def compute_in(context: Context, choice: ComputeChoice, model: ShownModel, console: Console) -> ComputeBackend:
    """The same decision for a context that is open, a window's. Raises UsageError, DeviceError."""
    _check_choice(choice)
    if choice.backend == "gl" and not context.can_compute:
        raise DeviceError(f"{too_old(context.gl, context.renderer)}; update the driver or use --backend cpu")
    computes = choice.backend == "gl"
    if choice.backend == "auto":
        computes = _is_worth_it(context, choice, model, True, console)
    if computes:
        return _told(ComputeBackend("gl", context, choice.cpu), choice)
    return _told(_on_cpu(choice, context, _draws_natively()), choice)


def _draws_natively() -> bool:
    """Whether pictures are drawn by code made for this CPU, where networks run there."""
    return not available()


def _on_cpu(choice: ComputeChoice, context: Context | None, natively: bool) -> ComputeBackend:
    """A network on the CPU, and what draws its pictures: code of the CPU, or OpenGL where there is a context."""
    native = NativePictures(choice.cpu.threads or None, context) if natively else None
    return ComputeBackend("cpu", context, choice.cpu, native)


def _told(compute: ComputeBackend, choice: ComputeChoice) -> ComputeBackend:
    debug.tell(debug.RUN, f"debug: --backend {choice.backend} is {compute.backend} here; drawn by: {compute.drawn_by}")
    return compute


def _check_choice(choice: ComputeChoice) -> None:
    if choice.backend not in ("gl", "cpu", "auto"):
        raise UsageError(f"--backend {choice.backend}: gl, cpu or auto is needed")
    check_bf16(choice.precision, choice.backend == "cpu", "add --backend cpu")


def work_on_cpu(draws: bool) -> str:
    """What is said to run on the CPU where networks do: the drawing, too, if there is any and code for it."""
    return f"{'network and drawing run' if draws and _draws_natively() else 'the network runs'} on the CPU"


def _is_one_worth_it(
    choice: ComputeChoice, model: ShownModel, draws: bool, console: Console, opener: ContextOpener
) -> bool:
    """Whether this machine has OpenGL worth running networks on; if not, one line says why."""
    by_hand = chosen_by_hand()
    try:
        with opener() as context:
            return _is_worth_it(context, choice, model, draws, console)
    except DeviceError as error:
        if by_hand == "gl":
            raise
        console.note_once(f"{_reason(error)}: {work_on_cpu(draws)}")
        return False


def _is_worth_it(context: Context, choice: ComputeChoice, model: ShownModel, draws: bool, console: Console) -> bool:
    """Whether a context computes, and sooner than the CPU; if not, one line says why."""
    if not context.can_compute:
        console.note_once(f"{too_old(context.gl, context.renderer)}: {work_on_cpu(draws)}")
        return False
    by_hand = chosen_by_hand()
    times = None if by_hand else backend_times(context, model, choice, draws)
    taken = auto_backend(context.is_software, times, by_hand)
    if taken == "cpu":
        measured = f", {times.line(frames_become(model, draws))}" if times and times.cpu_ms is not None else ""
        console.note_once(f"{_renderer(context)}{measured}: {work_on_cpu(draws)}; --backend gl overrides this")
    return taken == "gl"


def _renderer(context: Context) -> str:
    """A context's, with what else was tried if that is one of software."""
    if not context.is_software:
        return context.renderer
    failed = "".join(f"; {each.name}: {each.failure.why}" for each in context.tried if each.failure)
    return f"OpenGL is a software renderer here ({context.renderer}{failed})"


def _open_to_draw(natively: bool) -> Context:
    """Where OpenGL draws what is needed: an overlay alone if the CPU draws pictures. Raises DeviceError."""
    try:
        return open_context(DRAWING)
    except DeviceError as error:
        if natively:
            raise DeviceError(f"{_reason(error)}; --overlay needs it, all else works without") from None
        why = f"pictures need it, or code made for this CPU ({available()})"
        raise DeviceError(f"{_reason(error)}; {why}; --masks and --log work without") from None


def _reason(error: DeviceError) -> str:
    """An error of open_context without its advice, which does not fit here."""
    return str(error).partition(";")[0]

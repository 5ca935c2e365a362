"""Messages on standard input go in, what an interpreter in this process says to them comes out on standard output.

This is the child's side of child_interpreter.py: the one process that may crash, hang or run out of memory. Only where
a delegate is asked for it imports the compiler and OpenGL, which takes longer than all the rest of its start.
"""

import contextlib
import os
import signal
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, BinaryIO

from ..base.errors import DeviceError, TexelflowError
from .array_pipe import AnyArray, receive, send
from .interpreter import InterpreterOptions, LocalInterpreter

if TYPE_CHECKING:
    from ..targets.gl.context import Context


def serve() -> None:
    """Answer until standard input is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the parent decides
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what TensorFlow Lite prints is no answer
    with contextlib.suppress(EOFError, BrokenPipeError):
        message, (model,) = receive(requests)
        options = InterpreterOptions(**message["options"])
        context = None if options.delegate is None else _opened_context()  # before the limit: drivers reserve much
        _limit_memory(message["memory_bytes"])
        interpreter = _opened(answers, model, options, context)
        while interpreter:
            message, arrays = receive(requests)
            _answer(interpreter, message, arrays, answers)


def _opened_context() -> "Context | None":
    """None where there is no OpenGL, of which the delegate tells."""
    from ..targets.gl.context import open_context

    with contextlib.suppress(DeviceError):
        return open_context()
    return None


def _opened(
    answers: BinaryIO, model: AnyArray, options: InterpreterOptions, context: "Context | None"
) -> LocalInterpreter | None:
    try:
        data, delegate = model.tobytes(), None
        if options.delegate is not None:
            from ..delegate.delegate import GpuDelegate

            delegate = GpuDelegate(context=context.mgl if context else None, quiet=True, **options.delegate)
        interpreter = LocalInterpreter(data, options, delegate)
    except (TexelflowError, MemoryError) as error:
        _refuse(answers, error)
        return None
    delegation = interpreter.delegation and asdict(interpreter.delegation)
    send(answers, {"signature": asdict(interpreter.signature), "delegation": delegation})
    return interpreter


def _answer(interpreter: LocalInterpreter, message: dict[str, Any], arrays: list[AnyArray], answers: BinaryIO) -> None:
    _end_after(message["seconds"])
    try:
        found = (interpreter.tensor(message["tensor"]),) if "tensor" in message else interpreter.run(arrays)
    except (TexelflowError, MemoryError) as error:
        _refuse(answers, error)
    else:
        send(answers, {"invoke_ms": interpreter.invoke_ms}, found)
    _end_after(0)


def _refuse(answers: BinaryIO, error: Exception) -> None:
    known = isinstance(error, TexelflowError)
    send(answers, {"error": str(error) if known else "", "kind": type(error).__name__})


def _limit_memory(further_bytes: int) -> None:
    """Of address space beside what libraries have reserved, as far as the platform has such limits."""
    if sys.platform == "win32":
        return
    import resource

    with contextlib.suppress(OSError, ValueError):  # no such file, or less is granted already
        with open("/proc/self/statm", encoding="ascii") as file:
            limit_bytes = int(file.read().split()[0]) * resource.getpagesize() + further_bytes
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))


def _end_after(seconds: int) -> None:
    """Ends this process if it works for so long, so that it does not outlive a parent that was killed; 0 for never."""
    if sys.platform != "win32":
        signal.alarm(seconds)

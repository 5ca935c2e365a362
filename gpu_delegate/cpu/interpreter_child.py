"""The child process of child_interpreter.py: runs an interpreter and answers messages on standard input.

This is the child's side of child_interpreter.py: the one process that may crash, hang or run out of memory. With a
delegate it is started by delegate/interpreter_delegate.py, which imports the compiler and OpenGL.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, BinaryIO

from ..base.errors import TexelflowError
from .array_pipe import AnyArray, receive, send
from .delegation import AppliedDelegate
from .interpreter import InterpreterOptions, LocalInterpreter

MakeDelegate = Callable[[Mapping[str, Any]], AppliedDelegate]  # of its arguments; raises TexelflowError


def serve(prepare: Callable[[], MakeDelegate] | None = None) -> None:
    """Answer until standard input is closed.

    `prepare` is called in front of the limit of memory, since drivers reserve much, for what makes the delegate.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the parent decides
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what TensorFlow Lite prints is no answer
    with contextlib.suppress(EOFError, BrokenPipeError):
        message, (model,) = receive(requests)
        options = InterpreterOptions(**message["options"])
        make_delegate = prepare() if prepare else None
        _limit_memory(message["memory_bytes"])
        interpreter = _opened(answers, model, options, make_delegate)
        while interpreter:
            message, arrays = receive(requests)
            _answer(interpreter, message, arrays, answers)


def _opened(
    answers: BinaryIO, model: AnyArray, options: InterpreterOptions, make_delegate: MakeDelegate | None
) -> LocalInterpreter | None:
    try:
        delegate = make_delegate(options.delegate or {}) if make_delegate else None
        interpreter = LocalInterpreter(model.tobytes(), options, delegate)
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

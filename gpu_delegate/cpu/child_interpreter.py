"""Runs TensorFlow Lite in another process, for models that might crash it.

For models that are not fully verified here: only the child can crash, hang or take too much memory, which becomes a
ModelError.
"""

import contextlib
import signal
import subprocess
import weakref
from collections.abc import Sequence
from dataclasses import asdict
from threading import Event, Timer
from typing import Any, BinaryIO

import numpy as np

from ..base import errors
from ..base.errors import ModelError, TexelflowError
from ..base.isolated_python import OURS, python_command
from .array_pipe import AnyArray, receive, send
from .delegation import DelegateMaker, Delegation
from .footprint import MOST_BYTES, MOST_SECONDS
from .interpreter import CANNOT, InterpreterOptions, Signature

START_SECONDS = 60
COMPILE_SECONDS = 600  # for a delegate
PROCESS_BYTES = 1 << 30  # address space for copies and for threads, beside what the model may need
OPENGL_BYTES = 4 << 30  # the same for a delegate: software renderers have tensors and weights in this memory, too
_PROGRAM = f"from {__package__}.interpreter_child import serve; serve()"


class ChildInterpreter:
    """One model in a process of its own, which ends with this object."""

    invoke_ms = 0.0

    def __init__(self, model: bytes, options: InterpreterOptions, delegate: DelegateMaker | None = None) -> None:
        """Raises ModelError where TensorFlow Lite refuses the model or does not survive it, DeviceError."""
        pipe = subprocess.PIPE
        command = python_command(delegate.program if delegate else _PROGRAM, trusted=OURS)
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        self.process_id = self._process.pid
        self._finalizer = weakref.finalize(self, _end, self._process)
        memory_bytes = MOST_BYTES + PROCESS_BYTES + (0 if options.delegate is None else OPENGL_BYTES)
        start_s = START_SECONDS + (0 if options.delegate is None else COMPILE_SECONDS)
        message = {"options": asdict(options), "memory_bytes": memory_bytes}
        found, _ = self._ask(message, [np.frombuffer(model, np.uint8)], start_s)
        self.signature = _signature(found["signature"])
        self.delegation = _delegation(found["delegation"]) if found["delegation"] else None

    def run(self, arrays: Sequence[AnyArray]) -> tuple[AnyArray, ...]:
        """See AnyInterpreter."""
        seconds = round(MOST_SECONDS)
        answer, outputs = self._ask({"seconds": seconds}, arrays, seconds)
        self.invoke_ms = answer["invoke_ms"]
        return tuple(outputs)

    def tensor(self, index: int) -> AnyArray:
        """See AnyInterpreter."""
        seconds = round(MOST_SECONDS)
        return self._ask({"seconds": seconds, "tensor": index}, (), seconds)[1][0]

    def close(self) -> None:
        """See AnyInterpreter."""
        self._finalizer()

    def _ask(
        self, message: dict[str, Any], arrays: Sequence[AnyArray], seconds: int
    ) -> tuple[dict[str, Any], list[AnyArray]]:
        late, process = Event(), self._process

        def end_late() -> None:
            late.set()
            process.kill()

        timer = Timer(seconds, end_late)
        timer.daemon = True
        timer.start()
        try:
            send(_pipe(process.stdin), message, arrays)
            answer, found = receive(_pipe(process.stdout))
        except (EOFError, OSError, ValueError) as error:
            process.kill()
            ending = f"it ran longer than {seconds} s" if late.is_set() else _ending(process.wait())
            raise ModelError(f"{CANNOT}: {ending}") from error
        finally:
            timer.cancel()
        if "error" in answer:
            raise _refusal(answer)
        return answer, found


def _refusal(answer: dict[str, Any]) -> TexelflowError:
    """The child's error."""
    kind = getattr(errors, str(answer["kind"]), None)
    if isinstance(kind, type) and issubclass(kind, TexelflowError):
        return kind(str(answer["error"]))
    return ModelError(f"{CANNOT}: it needs more than {MOST_BYTES >> 20} MiB of memory")


def _ending(code: int) -> str:
    """How a process ended that should not have."""
    with contextlib.suppress(ValueError):
        return f"it ends with {signal.Signals(-code).name}, or needs more than {MOST_BYTES >> 20} MiB of memory"
    return f"its process ended with exit code {code}"


def _signature(found: dict[str, Any]) -> Signature:
    """JSON has no tuples."""
    shapes = {key: tuple(tuple(shape) for shape in found[key]) for key in ("input_shapes", "output_shapes")}
    return Signature(
        shapes["input_shapes"],
        tuple(found["input_dtypes"]),
        shapes["output_shapes"],
        tuple(found["output_dtypes"]),
        found["runtime"],
    )


def _delegation(found: dict[str, Any]) -> Delegation:
    partitions = tuple(tuple(nodes) for nodes in found["partitions"])
    return Delegation(**{**found, "partitions": partitions, "places": tuple(found["places"])})


def _pipe(stream: Any) -> BinaryIO:
    pipe: BinaryIO = stream
    return pipe


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Close the pipes and let the process end; it is not waited for beyond that."""
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream:
            with contextlib.suppress(OSError):
                stream.close()
    process.wait()

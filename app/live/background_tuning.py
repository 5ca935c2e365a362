"""Tunes a model in a process of its own while live runs, for the next start, on a GPU where it was not tuned yet.

The process has a context of its own and the least priority, and rests most of the time, so that frames wait for it a
millisecond at most; kernels are compiled there, where nobody waits for them. Nothing changes in the session that runs.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

from texelflow.gpu_delegate.base import debug
from texelflow.gpu_delegate.base.isolated_python import OURS, python_command
from texelflow.gpu_delegate.tuning.store import device_key, is_worth_tuning

from ..frame.inference.backends import ComputeBackend
from ..models.finding_loading import ShownModel
from ..settings.settings import Settings

_PROGRAM = "import sys; from texelflow.app.cli import main; sys.exit(main(sys.argv[1:]))"
_BUDGET = "1:00"  # of which it rests four fifths
_GRACE_S = 5.0  # to keep what was found
_LEAST_PRIORITY = 19


@contextlib.contextmanager
def background_tuning(compute: ComputeBackend, model: ShownModel, settings: Settings) -> Iterator[None]:
    """Within it a process tunes the model, where settings want that and it makes sense; it ends at the end."""
    command = tuning_command(compute, model, settings)
    if not command:
        yield
        return
    process = _started(command)
    try:
        yield
    finally:
        if process is not None:
            _end(process)


def tuning_command(compute: ComputeBackend, model: ShownModel, settings: Settings) -> list[str]:
    """The command of that process; nothing on the CPU, on software renderers, and where all is known."""
    context = compute.context
    if not settings.tune or compute.backend != "gl" or context is None:
        return []
    if not is_worth_tuning(context, model.graph, settings.precision):
        return []
    how = ("--precision", settings.precision, "--hybrid", settings.hybrid, "--only-on", device_key(context))
    return python_command(_PROGRAM, "tune", settings.model, "--gentle", "--budget", _BUDGET, *how, trusted=OURS)


def _started(command: Sequence[str]) -> "subprocess.Popen[bytes] | None":
    debug.tell(debug.RUN, "debug: kernels are tuned in the background")
    quiet = subprocess.DEVNULL
    try:
        if sys.platform == "win32":
            least = subprocess.IDLE_PRIORITY_CLASS
            return subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, creationflags=least)
        process = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)
        os.setpriority(os.PRIO_PROCESS, process.pid, _LEAST_PRIORITY)
        return process
    except OSError:  # no room for another process: everything goes on without
        return None


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

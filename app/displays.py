"""Finds a display to open windows on, or starts Xvfb where there is none."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping

from texelflow.gpu_delegate.base.errors import DeviceError

from .console import Console

_SCREEN = "1920x1200x24"


def has_display(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a window has somewhere to open; outside Linux there always is, as far as one can know."""
    return sys.platform != "linux" or bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


@contextlib.contextmanager
def some_display(console: Console) -> Iterator[None]:
    """Within it there is a display, which nobody sees where it is an Xvfb. Raises DeviceError where there is none."""
    if has_display():
        yield
        return
    program = shutil.which("Xvfb")
    if program is None:
        raise DeviceError("there is no display: set DISPLAY, or install Xvfb for one that nobody sees (Debian: xvfb)")
    read, write = os.pipe()
    command = [program, "-displayfd", str(write), "-screen", "0", _SCREEN, "-nolisten", "tcp"]
    with contextlib.ExitStack() as stack:
        stack.callback(os.environ.pop, "DISPLAY", None)
        server = subprocess.Popen(command, pass_fds=[write], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(server.wait)
        stack.callback(server.terminate)
        os.close(write)
        with open(read, "rb") as answer:
            number = answer.readline().strip()
        if not number.isdigit():
            raise DeviceError("Xvfb does not start; set DISPLAY to a display that there is")
        os.environ["DISPLAY"] = f":{number.decode()}"
        console.note("no display: the window is on one that nobody sees (Xvfb)")
        yield

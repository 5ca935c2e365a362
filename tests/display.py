"""Nothing goes in; a screen of the suite's own comes out (Xvfb), whose keys and windows xdotool moves."""

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

SCREEN = (800, 600)
_NEEDED = ("Xvfb", "xdotool")


class Display:
    """A screen without any window manager, named in DISPLAY."""

    def __init__(self, number: str, buffer: Path) -> None:
        self.name = f":{number}"
        self._buffer = buffer

    def xdotool(self, *arguments: object) -> str:
        """Run xdotool; its output."""
        command = ["xdotool", *map(str, arguments)]
        environment = {**os.environ, "DISPLAY": self.name}
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=20).stdout

    def press(self, *keys: str) -> None:
        """Press and release keys, by X's names of them, as in 'shift+Left', in the window that has the focus."""
        self.xdotool("key", *keys)

    def window(self, title: str) -> str:
        """The number of a window that is shown, and gets the keys from now on."""
        number = self.xdotool("search", "--sync", "--onlyvisible", "--name", title).split()[0]
        self.xdotool("windowfocus", "--sync", number)
        return number

    def ask_to_close(self, window: str) -> None:
        """What a window manager's close button does; xdotool learned it only lately."""
        with self._xlib() as (x11, server, atom):
            event = (ctypes.c_long * 24)(33, 0, 0, 0, int(window), atom(b"WM_PROTOCOLS"), 32, atom(b"WM_DELETE_WINDOW"))
            x11.XSendEvent(server, ctypes.c_ulong(int(window)), 0, ctypes.c_long(0), ctypes.byref(event))

    def minimise(self, window: str, minimised: bool = True) -> None:
        """What a window manager tells a window when it is minimised or comes back."""
        with self._xlib() as (x11, server, atom):
            state, name = (ctypes.c_long * 2)(3 if minimised else 1, 0), ctypes.c_ulong(atom(b"WM_STATE"))
            x11.XChangeProperty(server, ctypes.c_ulong(int(window)), name, name, 32, 0, ctypes.byref(state), 2)

    @contextlib.contextmanager
    def _xlib(self) -> Iterator[tuple[Any, ctypes.c_void_p, Callable[[bytes], int]]]:
        x11 = ctypes.CDLL("libX11.so.6")
        x11.XOpenDisplay.restype = ctypes.c_void_p
        x11.XInternAtom.restype = ctypes.c_ulong
        server = ctypes.c_void_p(x11.XOpenDisplay(self.name.encode()))
        yield x11, server, lambda name: int(x11.XInternAtom(server, name, 0))
        x11.XCloseDisplay(server)

    def picture(self) -> npt.NDArray[np.uint8]:
        """What the screen shows: RGB (H, W, 3), out of the X server's own memory."""
        data = self._buffer.read_bytes()
        header_bytes, colors = int.from_bytes(data[0:4], "big"), int.from_bytes(data[76:80], "big")
        width, height, row_bytes = (int.from_bytes(data[k : k + 4], "big") for k in (16, 20, 48))
        pixels = np.frombuffer(data, np.uint8, height * row_bytes, header_bytes + 12 * colors)
        return pixels.reshape(height, row_bytes // 4, 4)[:, :width, 2::-1].copy()


@pytest.fixture
def display(screen: Display, monkeypatch: pytest.MonkeyPatch) -> Display:
    """The suite's screen, as the one that windows open on."""
    monkeypatch.setenv("DISPLAY", screen.name)
    monkeypatch.setenv("PYGLFW_LIBRARY_VARIANT", "x11")
    monkeypatch.delenv("XDG_SESSION_TYPE", raising=False)
    return screen


@pytest.fixture(scope="session")
def screen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Display]:
    """One X server that ends with the session. Skips where there is none to be had."""
    missing = [program for program in _NEEDED if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not found; install xvfb and xdotool")
    folder = tmp_path_factory.mktemp("screen")
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{SCREEN[0]}x{SCREEN[1]}x24"]
    options = ["-nolisten", "tcp", "-noreset", "-fbdir", str(folder)]
    server = subprocess.Popen(command + options, pass_fds=[writing], stderr=subprocess.DEVNULL)
    os.close(writing)
    try:
        with os.fdopen(reading) as answer:
            number = answer.readline().strip()
        assert number, "Xvfb did not start"
        yield Display(number, folder / "Xvfb_screen0")
    finally:
        server.terminate()
        server.wait(timeout=20)

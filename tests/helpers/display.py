"""Virtual screens (Xvfb) for tests of windows, with keys and mouse by xdotool.

There are two: a bare one, and one with a small window manager (cwm), which windows on it cannot tell from a desktop's.
"""

import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.waiting import PATIENCE_S

SCREEN = (800, 600)
_NEEDED = {"Xvfb": "xvfb", "xdotool": "xdotool"}  # programs, and their packages
_MANAGER = {"cwm": "cwm"}


class Display:
    """A screen without any window manager, named in DISPLAY."""

    def __init__(self, name: str, buffer: Path) -> None:
        self.name, self.buffer = name, buffer

    def xdotool(self, *arguments: object) -> str:
        """Run xdotool; its output."""
        command = ["xdotool", *map(str, arguments)]
        environment = {**os.environ, "DISPLAY": self.name}
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True, timeout=PATIENCE_S
        ).stdout

    def press(self, *keys: str) -> None:
        """Press and release keys, by X's names of them, as in 'shift+Left', in the window that has the focus."""
        self.xdotool("key", *keys)

    def repeat_keys(self, repeats: bool) -> None:
        """Whether a key is pressed again and again while it is held, which it is for long where the machine is busy."""
        with self._xlib() as (x11, server, _):
            (x11.XAutoRepeatOn if repeats else x11.XAutoRepeatOff)(server)

    def window(self, title: str) -> str:
        """The number of a window that is shown, and gets the keys from now on."""
        number = self.xdotool("search", "--sync", "--onlyvisible", "--name", title).split()[0]
        self.xdotool("windowfocus", "--sync", number)
        return number

    def ask_to_close(self, window: str) -> None:
        """What a window manager's close button causes; xdotool learned it only lately."""
        with self._xlib() as (x11, server, atom):
            event = (ctypes.c_long * 24)(33, 0, 0, 0, int(window), atom(b"WM_PROTOCOLS"), 32, atom(b"WM_DELETE_WINDOW"))
            x11.XSendEvent(server, ctypes.c_ulong(int(window)), 0, ctypes.c_long(0), ctypes.byref(event))

    def minimize(self, window: str, minimized: bool = True) -> None:
        """What a window manager tells a window when it is minimized or comes back."""
        with self._xlib() as (x11, server, atom):
            state, name = (ctypes.c_long * 2)(3 if minimized else 1, 0), ctypes.c_ulong(atom(b"WM_STATE"))
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
        data = self.buffer.read_bytes()
        header_bytes, colors = int.from_bytes(data[0:4], "big"), int.from_bytes(data[76:80], "big")
        width, height, row_bytes = (int.from_bytes(data[k : k + 4], "big") for k in (16, 20, 48))
        pixels = np.frombuffer(data, np.uint8, height * row_bytes, header_bytes + 12 * colors)
        return pixels.reshape(height, row_bytes // 4, 4)[:, :width, 2::-1].copy()


class ManagedDisplay(Display):
    """A screen with a window manager: asked by the events that a person's keys and pointer cause, it does the rest."""

    def minimize(self, window: str, minimized: bool = True) -> None:
        """As by a window's button; or bring it back."""
        if minimized:
            self.xdotool("windowminimize", window)
        else:
            self.xdotool("windowactivate", window)

    def ask_to_close(self, window: str) -> None:
        """By the window manager's own key."""
        self.xdotool("windowfocus", "--sync", window)
        self.press("ctrl+alt+x")


@pytest.fixture
def display(screen: Display, monkeypatch: pytest.MonkeyPatch) -> Display:
    """The suite's screen, as the one that windows open on."""
    _windows_open_on(screen, monkeypatch)
    return screen


@pytest.fixture
def managed(managed_screen: ManagedDisplay, monkeypatch: pytest.MonkeyPatch) -> ManagedDisplay:
    """A screen with a window manager, as the one that windows open on."""
    _windows_open_on(managed_screen, monkeypatch)
    return managed_screen


def _windows_open_on(screen: Display, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", screen.name)
    monkeypatch.setenv("PYGLFW_LIBRARY_VARIANT", "x11")
    monkeypatch.delenv("XDG_SESSION_TYPE", raising=False)


@pytest.fixture(scope="session")
def screen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Display]:
    """One X server that ends with the session. Skips where there is none to be had."""
    _skip_without(_NEEDED)
    with screen_server(tmp_path_factory.mktemp("screen")) as screen:
        yield screen


@pytest.fixture(scope="session")
def managed_screen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ManagedDisplay]:
    """Another one with a window manager. Skips where there is none to be had."""
    _skip_without(_NEEDED | _MANAGER)
    with screen_server(tmp_path_factory.mktemp("managed")) as screen:
        manager = subprocess.Popen(["cwm", "-c", os.devnull], env={**os.environ, "DISPLAY": screen.name})
        try:
            _wait_for_manager(screen)
            yield ManagedDisplay(screen.name, screen.buffer)
        finally:
            manager.terminate()
            manager.wait(timeout=PATIENCE_S)


def _skip_without(needed: Mapping[str, str]) -> None:
    missing = [program for program in needed if shutil.which(program) is None]
    if missing:
        packages = " and ".join(needed[program] for program in missing)
        pytest.skip(f"{' and '.join(missing)} not found; install {packages}")


@contextlib.contextmanager
def screen_server(folder: Path) -> Iterator[Display]:
    """An X server with its memory in a file in that folder."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{SCREEN[0]}x{SCREEN[1]}x24"]
    options = ["-nolisten", "tcp", "-noreset", "-fbdir", str(folder)]
    server = subprocess.Popen(command + options, pass_fds=[writing], stderr=subprocess.DEVNULL)
    os.close(writing)
    try:
        with os.fdopen(reading) as answer:
            number = answer.readline().strip()
        assert number, "Xvfb did not start"
        screen = Display(f":{number}", folder / "Xvfb_screen0")
        screen.repeat_keys(False)
        yield screen
    finally:
        server.terminate()
        server.wait(timeout=PATIENCE_S)


def _wait_for_manager(screen: Display) -> None:
    """Until it answers what only window managers know."""
    end = monotonic() + PATIENCE_S
    while True:
        try:
            screen.xdotool("get_desktop")
            return
        except subprocess.CalledProcessError:
            assert monotonic() < end, "the window manager did not start"
            sleep(0.01)

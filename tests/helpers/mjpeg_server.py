"""A real HTTP server on loopback that sends MJPEG, and misbehaves as a test asks.

What it does may be changed at any time, from any thread: it can stall, send garbage, repeat one picture, change size,
cut the connection, refuse new ones, and come back.
"""

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

Rgb = npt.NDArray[np.uint8]
Mode = Literal["live", "still", "stall", "garbage"]
Answer = Callable[[socket.socket, str], None]  # gets a connection and the request's head

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: multipart/x-mixed-replace; boundary=frame\r\nConnection: close\r\n\r\n"
_GARBAGE = bytes(range(256)) * 40


def numbered_picture(index: int, size: tuple[int, int]) -> Rgb:
    """Gray (H, W, 3) with a bright corner, whose brightness goes with the index, so that neighbors differ."""
    picture = np.full((size[1], size[0], 3), 40 + index * 7 % 200, np.uint8)
    picture[: size[1] // 4, : size[0] // 4] = 255
    return picture


def jpeg(rgb: Rgb, quality: int = 90) -> bytes:
    """The picture (H, W, 3), encoded."""
    done, data = cv2.imencode(".jpg", np.ascontiguousarray(rgb[..., ::-1]), [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert done
    return bytes(data)


def part(data: bytes, kind: str = "image/jpeg") -> bytes:
    """One picture as it goes over the line."""
    return f"--frame\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data + b"\r\n"


class MjpegServer:
    """Serves until closed; a context manager. `mode`, `size` and `fps` may be set at any time."""

    def __init__(
        self,
        size: tuple[int, int] = (64, 48),
        fps: float = 60.0,
        picture: Callable[[int, tuple[int, int]], Rgb] = numbered_picture,
        answer: Answer | None = None,
    ) -> None:
        """`picture` makes picture number n of a size; `answer` takes a whole connection into its own hands."""
        self.size, self.fps, self.mode = size, fps, _live()
        self.connections = 0  # so far
        self.requests: list[str] = []  # their heads
        self._picture, self._answer = picture, answer or self._stream
        self._index = 0
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self.port = 0
        self.come_back()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}/stream"

    def __enter__(self) -> "MjpegServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.refuse()

    def cut(self) -> None:
        """Hang up on everybody."""
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def refuse(self) -> None:
        """Hang up, and take no new connections."""
        with self._lock:
            listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes who waits in accept
            listener.close()
        self.cut()

    def come_back(self) -> None:
        """Take connections, at the same port as before."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen()
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with self._lock:
                    if self._listener is not listener:
                        connection.close()
                        return
                    self._open.add(connection)
                    self.connections += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head and (data := connection.recv(4096)):
                head += data
            self.requests.append(head.decode("latin-1"))
            self._answer(connection, self.requests[-1])
        with self._lock:
            self._open.discard(connection)

    def _stream(self, connection: socket.socket, _head: str) -> None:
        connection.sendall(HEAD)
        pause = threading.Event()
        while True:
            self._index += self.mode == "live"
            if self.mode == "garbage":
                connection.sendall(_GARBAGE)
            elif self.mode != "stall":
                connection.sendall(part(jpeg(self._picture(self._index, self.size))))
            elif connection.fileno() < 0 or _hung_up(connection):
                return
            pause.wait(1 / self.fps)


def _hung_up(connection: socket.socket) -> bool:
    """Whether the other side has left; it never sends anything after its request."""
    with contextlib.suppress(BlockingIOError):
        return connection.recv(1, socket.MSG_DONTWAIT) == b""
    return False


def _live() -> Mode:
    return "live"

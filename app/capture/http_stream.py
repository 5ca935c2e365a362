"""Requests an address over HTTP and reads the answer as it arrives; no call takes longer than allowed.

A server that sends a byte now and then would satisfy the time-out of a socket for ever; here whole calls have one.
Kept instead of FFmpeg's HTTP, because that says "no such host, or it hung up" of whatever a server refuses (a missing
page, a password, a redirection in circles).
"""

import base64
import contextlib
import http.client
import io
import socket
import ssl
from time import perf_counter_ns
from typing import TYPE_CHECKING, cast
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from .source import SourceError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_MOST_REDIRECTS = 5
_PORTION_BYTES = 1 << 18
_HEADERS = {"User-Agent": "texelflow", "Accept": "*/*", "Connection": "close"}
_REASONS = {
    401: "wants a user name and a password, or others: give them as http://user:password@host/",
    403: "forbids access",
    404: "has nothing at this address",
}


class DigestWantedError(SourceError):
    """The server takes passwords in a form only that is not known here."""


def public(url: str) -> str:
    """The address as it may be shown: one line without user name, password and what follows a question mark."""
    with contextlib.suppress(ValueError):
        parts = urlsplit(url)
        url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        return "".join(character if character.isprintable() else "?" for character in url)[:120]
    return url.partition("://")[0] + "://..."


class HttpStream:
    """An answer of which the body has not been read yet."""

    def __init__(self, response: http.client.HTTPResponse, line: "_Line") -> None:
        self._response, self._line = response, line
        self.content_type = response.headers.get_content_type() if response.headers["Content-Type"] else ""

    def header(self, name: str) -> str:
        """A header's value, empty if there is none."""
        return self._response.headers.get(name, "")

    def read(self, deadline_ns: int) -> bytes:
        """What has arrived, waited for until then; empty at the end. Raises OSError, TimeoutError and HTTPException."""
        self._line.deadline_ns = deadline_ns
        return self._response.read1(_PORTION_BYTES)

    def close(self) -> None:
        """Hang up; harmless when repeated."""
        self._response.close()
        self._line.close()


def request(url: str, timeout_s: float) -> HttpStream:
    """Ask for an address, following redirections to other addresses of HTTP. Raises SourceError."""
    deadline_ns = perf_counter_ns() + int(timeout_s * 1e9)
    name = public(url)
    for _ in range(_MOST_REDIRECTS + 1):
        try:
            stream, status = _ask(urlsplit(url), deadline_ns)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise SourceError(f"{name} cannot be opened: {reason_of(error)}") from error
        if status == 200:
            return stream
        target, challenge = stream.header("Location"), stream.header("WWW-Authenticate")
        stream.close()
        if status == 401 and challenge.lower().startswith("digest") and "@" in urlsplit(url).netloc:
            raise DigestWantedError(f"{name} {_REASONS[401]}")
        if status not in (301, 302, 303, 307, 308) or not target:
            raise SourceError(f"{name} {_REASONS.get(status, f'answers with error {status}')}")
        url = urljoin(url, target)
        if urlsplit(url).scheme not in ("http", "https"):
            raise SourceError(f"{name} points to an address that is not of HTTP; open that one itself")
    raise SourceError(f"{name} points from address to address without end")


def reason_of(error: Exception) -> str:
    """Why a connection failed, in plain words."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ConnectionRefusedError):
        return "the connection is refused, so check the port, and that it is switched on"
    if isinstance(error, socket.gaierror):
        return "no such host is known, so check the spelling"
    if isinstance(error, ssl.SSLError):
        return "its certificate or encryption cannot be trusted"
    if isinstance(error, http.client.HTTPException):
        return "its answer is not HTTP"
    if isinstance(error, OSError):
        return (error.strerror or "the connection failed").lower()
    return "the address makes no sense"


def _ask(url: SplitResult, deadline_ns: int) -> tuple[HttpStream, int]:
    """One request and its status. Raises OSError, HTTPException and ValueError."""
    if not url.hostname:
        raise ValueError("no host")
    port = url.port or (443 if url.scheme == "https" else 80)
    raw = socket.create_connection((url.hostname, port), _left_s(deadline_ns))
    try:
        if url.scheme == "https":
            raw = ssl.create_default_context().wrap_socket(raw, server_hostname=url.hostname)
        line = _Line(raw, deadline_ns)
        connection = http.client.HTTPConnection(url.hostname, port)
        connection.sock = cast(socket.socket, _Handle(raw, line))
        connection.request("GET", (url.path or "/") + (f"?{url.query}" if url.query else ""), headers=_headers(url))
        response = connection.getresponse()
    except BaseException:
        raw.close()
        raise
    return HttpStream(response, line), response.status


def _headers(url: SplitResult) -> dict[str, str]:
    if url.username is None:
        return _HEADERS
    secret = f"{unquote(url.username)}:{unquote(url.password or '')}"
    return _HEADERS | {"Authorization": "Basic " + base64.b64encode(secret.encode()).decode()}


def _left_s(deadline_ns: int) -> float:
    left_s = (deadline_ns - perf_counter_ns()) / 1e9
    if left_s <= 0:
        raise TimeoutError
    return left_s


class _Line(io.RawIOBase):
    """What a socket receives, until a deadline that may be moved."""

    def __init__(self, raw: socket.socket, deadline_ns: int) -> None:
        self._raw, self.deadline_ns = raw, deadline_ns

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        self._raw.settimeout(_left_s(self.deadline_ns))
        return self._raw.recv_into(buffer)

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


class _Handle:
    """As much of a socket as http.client needs of one; closing it leaves the line open."""

    def __init__(self, raw: socket.socket, line: _Line) -> None:
        self._raw, self._line = raw, line

    def sendall(self, data: bytes) -> None:
        self._raw.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._line)

    def close(self) -> None:
        pass

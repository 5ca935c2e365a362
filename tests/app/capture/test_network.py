"""Streams are read from real servers on loopback, whatever those send; addresses and errors are told in one line."""

import contextlib
import gc
import os
import socket
import subprocess
import sys
import threading
import time
from time import perf_counter_ns

import cv2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.mjpeg_server import HEAD, Answer, MjpegServer, jpeg, numbered_picture, part
from tests.helpers.running import ROOT
from tests.helpers.stream_sender import send_pattern
from tests.helpers.time_codes import read_time_code
from tests.helpers.waiting import PATIENCE_S, until
from texelflow.app.capture import mjpeg
from texelflow.app.capture import network_source as network
from texelflow.app.capture.capture import Capture
from texelflow.app.capture.http_stream import public, request
from texelflow.app.capture.jpegs import MOST_BYTES, JpegSplitter
from texelflow.app.capture.mjpeg import MjpegSource
from texelflow.app.capture.network_source import open_network
from texelflow.app.capture.opener import opener
from texelflow.app.capture.source import CaptureRequest, Source, SourceError, SourceLostError

SIZE = (64, 48)
PICTURES = [jpeg(numbered_picture(index, SIZE)) for index in range(4)]
PNG = bytes(cv2.imencode(".png", numbered_picture(0, SIZE))[1])
EXIF = b"\xff\xe1" + (2 + len(PICTURES[0])).to_bytes(2, "big") + PICTURES[0]
WITH_THUMBNAIL = PICTURES[1][:2] + EXIF + PICTURES[1][2:]
HUGE = PICTURES[0].replace(b"\x00\x30\x00\x40\x03", b"\x75\x30\x75\x30\x03")  # 30000x30000, of which it has but a bit


def sends(*data: bytes) -> Answer:
    """A server that sends this and then nothing, without hanging up."""

    def answer(connection: socket.socket, _head: str) -> None:
        for portion in data:
            connection.sendall(portion)
        with contextlib.suppress(OSError):
            connection.recv(1)

    return answer


def opening_error(answer: Answer) -> str:
    """What is said when a server answers like this. The address is replaced by URL."""
    with MjpegServer(answer=answer) as server:
        with pytest.raises(SourceError) as caught:
            open_network(server.url, CaptureRequest())
        return str(caught.value).replace(server.url, "URL")


@given(
    st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=30).filter(lambda junk: b"\xff" not in junk)), max_size=6),
    st.lists(st.integers(1, 3000), min_size=1, max_size=20),
)
@settings(max_examples=60, deadline=None)
def test_pictures_are_found_among_anything(parts: list[tuple[int, bytes]], portions: list[int]) -> None:
    stream = b"".join(junk + PICTURES[which] for which, junk in parts)
    splitter, found, at, turn = JpegSplitter(), [], 0, 0
    while at < len(stream):
        size = portions[turn % len(portions)]
        found += splitter.feed(stream[at : at + size], turn)
        at, turn = at + size, turn + 1
    assert [data for data, _ in found] == [PICTURES[which] for which, _ in parts]
    assert all(began < turn for _, began in found)


@given(st.binary(max_size=400), st.integers(0, 1000))
@settings(deadline=None)
def test_after_garbage_pictures_are_found_again(garbage: bytes, cut: int) -> None:
    splitter = JpegSplitter()
    splitter.feed(b"\xff\xd8\xff" + garbage + PICTURES[0][:cut], 0)
    splitter.feed(PICTURES[2] * (70_000 // len(PICTURES[2])), 0)  # what a false length may swallow
    assert [data for data, _ in splitter.feed(PICTURES[3] + PICTURES[2], 0)] == [PICTURES[3], PICTURES[2]]


def test_thumbnails_are_no_pictures() -> None:
    assert [data for data, _ in JpegSplitter().feed(WITH_THUMBNAIL + PICTURES[2], 0)] == [WITH_THUMBNAIL, PICTURES[2]]
    half = WITH_THUMBNAIL[: -len(PICTURES[1]) // 3]
    assert [data for data, _ in JpegSplitter().feed(half + PICTURES[2] + PICTURES[3], 0)] == [PICTURES[3]]


def test_a_picture_without_end_does_not_fill_the_memory() -> None:
    splitter = JpegSplitter()
    assert not splitter.feed(PICTURES[0][:-2], 0)
    zeros = bytes(MOST_BYTES // 4)
    for _ in range(12):
        assert not splitter.feed(zeros, 0)
        assert len(splitter._data) <= MOST_BYTES + 2 * len(zeros)
    assert [data for data, _ in splitter.feed(PICTURES[1], 0)] == [PICTURES[1]]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "URL has nothing at this address"),
        (b"HTTP/1.1 401 No\r\nWWW-Authenticate: Basic\r\n\r\n", "URL wants a user name and a password"),
        (b"HTTP/1.1 500 Oh\r\n\r\n", "URL answers with error 500"),
        (b"HTTP/1.1 302 Go\r\nLocation: file:///etc/passwd\r\n\r\n", "points to an address that is not of HTTP"),
        (b"HTTP/1.1 302 Go\r\nLocation: /again\r\n\r\n", "points from address to address without end"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>", "URL is text/html, not a stream of pictures"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\n\r\n", "URL is image/jpeg, not a stream of pictures"),
        (b"\x00\x01\x02 what\r\n\r\n", "URL cannot be opened: its answer is not HTTP"),
    ],
)
def test_what_a_server_refuses_is_said(answer: bytes, message: str) -> None:
    def reply(connection: socket.socket, _head: str) -> None:
        connection.sendall(answer)

    found = opening_error(reply)
    assert message in found.replace("/again", "")
    assert "\n" not in found


def test_a_playlist_of_local_files_is_not_followed() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.apple.mpegurl\r\nConnection: close\r\n\r\n"
    playlist = head + b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/hostname\n"

    def reply(connection: socket.socket, _head: str) -> None:
        connection.sendall(playlist)

    assert opening_error(reply) == "URL cannot be opened: it is no video in a known format"


def test_names_and_passwords_are_sent_and_not_shown() -> None:
    with MjpegServer() as server:
        url = server.url.replace("://", "://us%40er:se%3Acret@") + "?token=secret"
        source = open_network(url, CaptureRequest())
        source.close()
        assert "Authorization: Basic dXNAZXI6c2U6Y3JldA==" in server.requests[0]
        assert "GET /stream?token=secret " in server.requests[0]
        assert source.description == f"{server.url}, MJPEG 64x48"
        server.refuse()
        with pytest.raises(SourceError) as caught:
            open_network(url, CaptureRequest())
    assert "secret" not in str(caught.value)


def test_passwords_are_sent_as_digests_too() -> None:
    def answer(connection: socket.socket, head: str) -> None:
        if "Authorization: Digest" in head:
            connection.sendall(HEAD)
            while True:
                connection.sendall(b"".join(map(part, PICTURES)))
        else:
            challenge = b'WWW-Authenticate: Digest realm="cam", nonce="abc", qop="auth"'
            connection.sendall(b"HTTP/1.1 401 No\r\n" + challenge + b"\r\nContent-Length: 0\r\n\r\n")

    with MjpegServer(answer=answer) as server:
        url = server.url.replace("://", "://user:secret@")
        with contextlib.closing(open_network(url, CaptureRequest())) as source:
            assert source.description.startswith(f"{server.url}, mjpeg 64x48")
            assert source.read() is not None
        with pytest.raises(SourceError, match="wants a user name and a password"):
            open_network(server.url, CaptureRequest())


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:secret@host:80/a/b?c=d#e", "http://host:80/a/b"),
        ("rtsp://secret@[::1]:554/x", "rtsp://[::1]:554/x"),
        ("http://user:secret@[bad/", "http://..."),
        ("http://host/\x1b[31m\n", "http://host/?[31m"),
    ],
)
def test_what_is_shown_of_an_address(url: str, shown: str) -> None:
    assert public(url) == shown


def test_redirections_are_followed() -> None:
    with MjpegServer() as server:
        redirect = f"HTTP/1.1 302 Found\r\nLocation: {server.url}\r\nContent-Length: 0\r\n\r\n".encode()
        with MjpegServer(answer=sends(redirect)) as other:
            source = open_network(other.url, CaptureRequest())
            assert source.read() is not None
            source.close()


def test_chunks_and_wrong_headers_do_no_harm() -> None:
    head = HEAD.replace(b"Connection", b"Transfer-Encoding: chunked\r\nConnection").replace(b"=frame", b"=another")
    body = b"--nothing\r\nContent-Length: 10000000000\r\n\r\n" + b"".join(PICTURES[:2]) + PNG + PICTURES[2]
    chunks = [f"{len(body[at : at + 100]):x}\r\n".encode() + body[at : at + 100] for at in range(0, len(body), 100)]
    with MjpegServer(answer=sends(head, b"\r\n".join(chunks), b"\r\n")) as server:
        source = open_network(server.url, CaptureRequest())
        pictures = 0
        while pictures < 3:
            shot = source.read()
            assert shot is not None
            pictures += 1 + shot.skipped
        source.close()


def test_pictures_without_anything_between_them() -> None:
    def answer(connection: socket.socket, _head: str) -> None:
        connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: video/x-motion-jpeg\r\n\r\n" + b"".join(PICTURES))

    with MjpegServer(answer=answer) as server, contextlib.closing(open_network(server.url, CaptureRequest())) as source:
        assert source.format.size == SIZE


def test_a_damaged_picture_is_skipped() -> None:
    damaged = PICTURES[0][:200] + b"\xff\xd9"
    with MjpegServer(answer=sends(HEAD, part(damaged), part(HUGE), part(PICTURES[1]))) as server:
        source = open_network(server.url, CaptureRequest())
        assert isinstance(source, MjpegSource)
        assert source.format.size == SIZE
        source.close()


@pytest.mark.parametrize("data", [PNG, HUGE, bytes(100_000), PICTURES[0][:-2]], ids=["png", "huge", "zeros", "cut"])
def test_what_is_no_picture_is_refused(data: bytes) -> None:
    def answer(connection: socket.socket, _head: str) -> None:
        connection.sendall(HEAD + part(data))

    assert opening_error(answer) == "URL cut the connection"


def drip(connection: socket.socket, _head: str) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection.sendall(b"H")
            time.sleep(0.05)


def test_an_answer_that_drips_is_no_answer() -> None:
    with MjpegServer(answer=drip) as server, pytest.raises(SourceError, match="cannot be opened: no answer in time"):
        request(server.url, 0.3)


def test_a_stream_that_drips_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(connection: socket.socket, head: str) -> None:
        connection.sendall(HEAD + part(PICTURES[0]) + part(PICTURES[1])[:200])
        drip(connection, head)

    with MjpegServer(answer=answer) as server:
        source = open_network(server.url, CaptureRequest())
        assert source.read() is not None
        monkeypatch.setattr(mjpeg, "_READ_NS", 200_000_000)
        with pytest.raises(SourceLostError, match="sends nothing that is a whole JPEG picture"):
            source.read()
        source.close()


def open_files() -> int:
    """How many this process has open; 0 where the system does not tell."""
    gc.collect()
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


def test_connections_and_threads_do_not_pile_up() -> None:
    def answer(connection: socket.socket, _head: str) -> None:
        connection.sendall(HEAD + part(PICTURES[0]))

    with MjpegServer(answer=answer) as server:
        threads, files = threading.active_count(), open_files()
        for _ in range(30):
            with Capture(opener(server.url, CaptureRequest())) as capture:
                capture.first(PATIENCE_S)
        until(lambda: threading.active_count() <= threads)
        assert open_files() <= files + 1  # the server may still hold one of its own


def free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def codes_of(source: Source, count: int) -> list[int]:
    """The numbers in so many pictures of the test pattern, without those that damage made unreadable."""
    codes = []
    for _ in range(count):
        shot = source.read()
        assert shot is not None
        assert shot.convert is not None
        assert shot.captured_ns is not None
        assert shot.captured_ns <= perf_counter_ns()
        codes.append(read_time_code(shot.convert()))
    return [code for code in codes if code is not None]


def test_a_transport_stream_over_udp() -> None:
    url, unwanted = f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}", threading.Event()
    sender = threading.Thread(target=send_pattern, args=(url + "?pkt_size=1316", "mpegts", unwanted))
    sender.start()
    try:
        with contextlib.closing(open_network(url, CaptureRequest())) as source:
            assert source.description == f"{url}, mpeg2video 320x240, 60 fps"
            codes = codes_of(source, 12)
            assert len(codes) > 6
            assert codes == sorted(set(codes))
    finally:
        unwanted.set()
        sender.join()


def test_rtsp(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the camera calls, and we listen: FFmpeg has no other server of RTSP."""
    monkeypatch.setitem(network._OF_SCHEME, "rtsp", {"rtsp_flags": "listen", "listen_timeout": str(round(PATIENCE_S))})
    monkeypatch.setattr(network, "_OPEN_S", PATIENCE_S)
    url = f"rtsp://127.0.0.1:{free_port(socket.SOCK_STREAM)}/live"
    with subprocess.Popen([sys.executable, "-m", "tests.helpers.stream_sender", url, "rtsp"], cwd=ROOT) as camera:
        try:
            with contextlib.closing(open_network(url, CaptureRequest())) as source:
                assert source.description == f"{url}, mpeg2video 320x240, 60 fps"
                codes = codes_of(source, 12)
                assert len(codes) > 6
                assert codes == sorted(set(codes))
                camera.kill()
                with pytest.raises(SourceLostError, match=url):
                    codes_of(source, 1000)
        finally:
            camera.kill()


def test_a_camera_that_is_not_there() -> None:
    with socket.socket() as probe:  # bound, but not listening
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        for scheme in ("tcp", "rtsp", "http"):
            with pytest.raises(SourceError, match=f"^{scheme}://127.0.0.1:{port}/x cannot be opened: .*refused"):
                open_network(f"{scheme}://user:secret@127.0.0.1:{port}/x", CaptureRequest())

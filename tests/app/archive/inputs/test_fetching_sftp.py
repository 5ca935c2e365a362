"""Inputs fetched from a real SFTP server on this machine, where paramiko is installed."""

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from texelflow.app.archive.inputs.fetching import InputCache
from texelflow.app.archive.jobs.failures import MachineError
from texelflow.app.archive.jobs.jobs import ArchiveInput
from texelflow.gpu_delegate.base.errors import MediaError

paramiko = pytest.importorskip("paramiko")
fsspec_config = pytest.importorskip("fsspec.config")


class Login(paramiko.ServerInterface):  # type: ignore[misc,name-defined,unused-ignore]
    def check_auth_password(self, username: str, password: str) -> int:
        right = (username, password) == ("reader", "secret")
        return int(paramiko.AUTH_SUCCESSFUL if right else paramiko.AUTH_FAILED)

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return int(paramiko.OPEN_SUCCEEDED)

    def get_allowed_auths(self, username: str) -> str:
        return "password"


class Files(paramiko.SFTPServerInterface):  # type: ignore[misc,name-defined,unused-ignore]
    def stat(self, path: str) -> object:
        try:
            return paramiko.SFTPAttributes.from_stat(os.stat(path))
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno)

    lstat = stat

    def open(self, path: str, flags: int, attr: object) -> object:
        try:
            handle = paramiko.SFTPHandle(flags)
            handle.readfile = Path(path).open("rb")  # noqa: SIM115 - paramiko closes it
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno)
        return handle


class SftpServer:
    """Serves this machine's files until it is closed."""

    def __init__(self) -> None:
        self._key, self._socket = paramiko.ECDSAKey.generate(), socket.create_server(("127.0.0.1", 0))
        self.address = f"sftp://reader@127.0.0.1:{self._socket.getsockname()[1]}"
        self._transports = list[object]()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            transport = paramiko.Transport(connection)
            transport.add_server_key(self._key)
            transport.set_subsystem_handler("sftp", paramiko.SFTPServer, Files)
            transport.start_server(server=Login())
            self._transports.append(transport)

    def close(self) -> None:
        self._socket.close()
        for transport in self._transports:
            transport.close()  # type: ignore[attr-defined]


@pytest.fixture
def server() -> Iterator[SftpServer]:
    made = SftpServer()
    yield made
    made.close()


def test_a_copy_over_sftp(server: SftpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = os.urandom(3 << 20)
    (tmp_path / "talk.mp4").write_bytes(data)
    cache = InputCache(tmp_path / "cache", 8 << 20, threading.Event(), waits_s=(0.01,))
    source = ArchiveInput(0, f"{server.address}{tmp_path}/talk.mp4", "talk", len(data), 1)
    login = {"allow_agent": False, "look_for_keys": False}
    monkeypatch.setitem(fsspec_config.conf, "sftp", {"password": "secret", **login})
    with cache.open(source) as held:
        assert held.path.read_bytes() == data
    gone = ArchiveInput(0, f"{server.address}{tmp_path}/gone.mp4", "gone")
    with pytest.raises(MediaError, match="nothing is there"), cache.open(gone):
        pass
    monkeypatch.setitem(fsspec_config.conf, "sftp", {"password": "wrong", **login})
    other = ArchiveInput(0, f"{server.address}{tmp_path}/talk.mp4", "talk", len(data), 2)
    with pytest.raises(MachineError, match="cannot fetch"), cache.open(other):
        pass

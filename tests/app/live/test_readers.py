"""How many programs read the virtual camera, by answers as v4l2loopback gives them; and the unit for systemd."""

import configparser
import shlex
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.fake_camera import FakeCamera, compiler
from texelflow import assets
from texelflow.app.capture.v4l2 import DQEVENT, SUBSCRIBE_EVENT, parse_event
from texelflow.app.live.loopback_readers import CLIENT_USAGE, readers
from texelflow.app.settings.flags import flag_of

UNIT = Path(assets.__file__).parent / "texelflow-live.service"
IS_LINUX_64 = sys.platform == "linux" and struct.calcsize("P") == 8
# struct v4l2_event on a machine of 64 bits: one program streams; the second event since the subscription, at 3 s
ONE_READER = bytes.fromhex(
    "0100e010 00000000 01000000"
    + 60 * "00"
    + "00000000 02000000 0300000000000000 e803000000000000 00000000"
    + 36 * "00"
)


@pytest.mark.skipif(not IS_LINUX_64, reason="the bytes are those of a Linux of 64 bits")
def test_an_event_says_how_many_read() -> None:
    assert (hex(SUBSCRIBE_EVENT), hex(DQEVENT)) == ("0x4020565a", "0x80885659"), "as linux/videodev2.h has them"
    assert parse_event(ONE_READER) == (CLIENT_USAGE, 1)
    assert CLIENT_USAGE == 0x10E00001


@given(st.integers(0, 2**32 - 1), st.binary(min_size=4, max_size=4))
def test_any_event_is_read(kind: int, told: bytes) -> None:
    size_bytes = DQEVENT >> 16 & 0x3FFF
    data = (struct.pack("@I0q", kind) + told).ljust(size_bytes, b"\xff")
    assert parse_event(data) == (kind, int.from_bytes(told, sys.byteorder))


@pytest.mark.skipif(compiler() is None, reason="the device is made of C, on Linux")
def test_the_driver_is_asked_anew_each_time(tmp_path: Path) -> None:
    with FakeCamera(tmp_path, [("YUYV", 64, 48, 30)], {}) as fake:
        assert fake.ask("readers") == {"readers": None}, "as versions before 0.13 and other drivers"
        for count in (0, 1, 2, 0):
            (tmp_path / "readers").write_text(str(count))
            assert fake.ask("readers") == {"readers": count}
        fake.node.unlink()
        assert fake.ask("readers") == {"readers": None}


def test_what_is_no_device_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert readers(str(tmp_path / "file")) is None
    assert readers(str(tmp_path / "none")) is None


def test_the_unit_runs_the_program_and_ends_it_by_a_signal() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their capitals
    unit.read_string(UNIT.read_text())
    program, verb, *options = shlex.split(unit["Service"]["ExecStart"])
    assert (Path(program).name, verb) == ("texelflow", "live")
    assert options == ["--no-window", flag_of("virtual_camera")]
    assert unit["Service"]["Restart"] == "on-failure"
    assert unit["Service"]["KillSignal"] == "SIGTERM"
    assert "143" in unit["Service"]["SuccessExitStatus"].split()
    assert unit["Install"]["WantedBy"] == "default.target"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("%h/.local/bin/texelflow", shutil.which("true") or "/bin/true"))
    command = ["systemd-analyze", "verify", "--user", "--man=no", str(unit)]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert UNIT.name not in done.stderr

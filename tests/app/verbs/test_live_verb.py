"""`texelflow live` as a command: exit codes, one line for what is missing or wrong, signals, settings that reopen."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.helpers.commands import Command
from tests.helpers.display import Display
from tests.helpers.markers import exhaustive, one_in
from tests.helpers.mjpeg_server import HEAD, MjpegServer
from tests.helpers.running import ROOT, times_of
from tests.helpers.waiting import PATIENCE_S, until
from texelflow.app.media.sources import FileSource
from texelflow.app.settings.config import read_config
from texelflow.app.settings.settings import Settings
from texelflow.gpu_delegate.base.errors import MediaError

PATTERN = ("--camera", "pattern", "--size", "160x120", "--fps", "60", "--effect", "none")
OLD_OPENGL = {
    "MESA_GL_VERSION_OVERRIDE": "3.3",
    "MESA_GLSL_VERSION_OVERRIDE": "330",
    "TEXELFLOW_GL_API": "gl",
}


@pytest.fixture
def texelflow(capfd: pytest.CaptureFixture[str]) -> Command:
    """In this process; what libraries write counts, too."""
    return Command(capfd)


@dataclass(frozen=True)
class Ended:
    """What became of a process."""

    code: int
    out: str
    lines: list[str]  # on stderr

    def __post_init__(self) -> None:
        assert not any("Traceback" in line for line in self.lines), self.lines


def run(
    act: Callable[["subprocess.Popen[str]"], object], *arguments: object, environment: Mapping[str, str] | None = None
) -> Ended:
    """Start `live` on the display of this process, do something to it, and wait for its end."""
    command = [sys.executable, "-m", "texelflow.app", "live", *map(str, arguments)]
    environment = {**os.environ, **(environment or {})}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            act(process)
            out, complaint = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    return Ended(process.returncode, out, complaint.splitlines())


def running_until(process: "subprocess.Popen[str]", true: Callable[[], bool]) -> None:
    """Wait for something to become true; fails with its last words if the process ends before."""
    until(lambda: true() or process.poll() is not None)
    assert process.poll() is None, process.communicate()


def frames_in(path: Path) -> int:
    """As far as they are written."""
    try:
        return len(times_of(path))
    except MediaError:  # there is no whole frame yet
        return 0


class TestWhatIsMissing:
    """Exit code 2, and one line on stderr."""

    @one_in(
        3,
        ("options", "words"),
        [
            (("--camera", "57"), "there is no camera /dev/video57"),
            (("--camera", "gone.mp4"), "'gone.mp4' does not exist"),
            (("--camera", "garbage.mp4"), "'garbage.mp4' is not a video in a known format, or is damaged"),
            (("--camera", "file:///etc/passwd"), "file:// is not an address that can be opened"),
            ((*PATTERN, "--background", "gone.jpg"), "cannot read background gone.jpg"),
            ((*PATTERN, "--background", "gone.mp4"), "cannot read background gone.mp4"),
            ((*PATTERN, "--background", "http://a.test/b.png"), "b.png: an image, a video, or a color"),
            ((*PATTERN, "--background", "garbage.mp4"), "images have to be PNG, JPEG, WebP, TIFF, BMP"),
            ((*PATTERN, "--record", "nowhere/out.mp4"), "there is no folder 'nowhere'"),
            ((*PATTERN, "--mattes", "x", "--cutouts", "./x"), "--cutouts x: that is where --masks writes"),
            ((*PATTERN, "--record", "out.gif"), "its name must end in .mp4, .m4v, .mov, .mkv"),
            ((*PATTERN, "--model", "gone.tflite"), "'gone.tflite': no such file; check the path"),
            (("--config", "gone.toml"), "cannot read gone.toml"),
            (("--config", "wrong.toml"), "wrong.toml, line 3: [picture] efect is no setting; did you mean effect?"),
            (("--effect", "nonsense"), "--effect nonsense: one of tint, "),
            (("--smooth", "1.5"), "--smooth 1.5: a number from 0 to 1 is needed"),
            (("--fps", "nan"), "--fps nan: a number from 1 to 1000"),
            (("--size", "0x7"), "--size 0x7: a size such as 640x480, 16384 a side at most, is needed"),
            (("--every", "0"), "--every 0: a whole number from 1 to 60 is needed"),
        ],
    )
    def test_it_is_said_in_one_line(
        self,
        display: Display,
        texelflow: Command,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        options: tuple[str, ...],
        words: str,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "garbage.mp4").write_bytes(bytes(range(256)) * 8)
        (tmp_path / "wrong.toml").write_text('[picture]\neffect = "tint"\nefect = "tint"\n')
        assert words in texelflow("live", *options).complaint
        assert not [*tmp_path.glob("out*")]

    @pytest.mark.skipif(bool([*Path("/dev").glob("video*")]), reason="there are cameras here")
    def test_the_usual_camera(self, display: Display, texelflow: Command) -> None:
        assert "there is no camera /dev/video0" in texelflow("live").complaint

    def test_nobody_listens_there(self, display: Display, texelflow: Command) -> None:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            address = "{}:{}".format(*unused.getsockname())
            for scheme in ("http", "rtsp"):
                assert "refused" in texelflow("live", "--camera", f"{scheme}://{address}/").complaint

    def test_a_stream_without_pictures(self, display: Display, texelflow: Command) -> None:
        def hang_up(connection: socket.socket, _: str) -> None:
            connection.sendall(HEAD)

        with MjpegServer(answer=hang_up) as server:
            assert server.url in texelflow("live", "--camera", server.url).complaint

    @pytest.mark.window
    def test_no_display(self, texelflow: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("DISPLAY", "WAYLAND_DISPLAY"):
            monkeypatch.delenv(name, raising=False)
        assert "windows need a display" in texelflow("live", *PATTERN).complaint


class TestOpenGL:
    def test_a_display_whose_opengl_does_not_compute_has_the_network_on_the_cpu(
        self, display: Display, tmp_path: Path
    ) -> None:
        def quit_it(process: "subprocess.Popen[str]") -> None:
            running_until(process, out.exists)
            display.window("texelflow")
            display.press("q")

        out = tmp_path / "out.mp4"
        ended = run(quit_it, *PATTERN, "--effect", "tint", "--record", out, environment=OLD_OPENGL)
        assert ended.code == 0
        note, *_, saved = ended.lines
        assert "4.3" in note
        assert "network and drawing run on the CPU" in note
        assert saved.startswith(f"written: {out}")

    @exhaustive
    def test_which_is_no_place_for_what_must_run_there(self, display: Display) -> None:
        ended = run(lambda process: None, *PATTERN, "--backend", "gl", environment=OLD_OPENGL)
        assert (ended.code, ended.out) == (2, "")
        (line,) = ended.lines
        assert line.startswith("texelflow: no window: ")
        assert "--backend cpu" in line


class TestWithoutWindow:
    def test_a_file_of_settings_is_printed_that_reads_back(self, texelflow: Command, tmp_path: Path) -> None:
        dumped = texelflow("live", *PATTERN, "--dump-config")
        assert (dumped.code, dumped.err) == (0, "")
        file = tmp_path / "live.toml"
        file.write_text(dumped.out)
        assert read_config(file) == Settings(camera="pattern", size="160x120", fps=60.0, effect="none")
        assert texelflow("live", "--config", file, "--dump-config").out == dumped.out

    def test_cameras_are_listed(self, texelflow: Command) -> None:
        listed = texelflow("live", "--list")
        assert (listed.code, listed.err) == (0, "")
        assert "camera" in listed.out

    def test_help(self, texelflow: Command) -> None:
        shown = texelflow("live", "--help")
        assert shown.code == 0
        assert "--delay-video" in shown.out


class TestRunning:
    def test_what_is_found_is_told_in_a_line_for_each_frame(self, display: Display, tmp_path: Path) -> None:
        def interrupt(process: "subprocess.Popen[str]") -> None:
            running_until(process, lambda: path.exists() and path.read_text().count("\n") > 2)
            process.send_signal(signal.SIGINT)

        path = tmp_path / "found.jsonl"
        ended = run(interrupt, *PATTERN, "--json-lines", path, "--backend", "cpu")
        assert ended.code == 130, ended.lines
        told = [json.loads(line) for line in path.read_text().splitlines()]
        numbers = [line["index"] for line in told]
        assert numbers == sorted(set(numbers))
        assert {(*line["size"], *line["findings"]) for line in told} == {(160, 120)}  # the pattern has nobody

    @exhaustive
    @pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_it_is_interrupted_and_what_was_recorded_is_whole(
        self, display: Display, tmp_path: Path, number: signal.Signals, code: int
    ) -> None:
        def interrupt(process: "subprocess.Popen[str]") -> None:
            running_until(process, lambda: out.exists() and len([*masks.glob("*.png")]) > 5)
            process.send_signal(number)

        out, masks = tmp_path / "out.mp4", tmp_path / "masks"
        ended = run(interrupt, *PATTERN, "--record", out, "--mattes", masks, "--backend", "cpu", "--json")
        assert ended.code == code, ended.lines
        assert len(times_of(out)) > 5
        assert any(line.startswith(f"written: {out} (") for line in ended.lines)
        summary = json.loads(ended.out)
        assert summary["age_at_swap"]["median_ms"] > 0
        assert summary["frames"] > 5
        assert summary["readback_bytes"] > 0

    @exhaustive
    def test_another_size_opens_the_camera_again(self, display: Display, tmp_path: Path) -> None:
        def change(process: "subprocess.Popen[str]") -> None:
            display.window("texelflow")
            running_until(process, lambda: frames_in(out) > 0)
            config.write_text('[camera]\nsize = "200x150"\n')
            running_until(process, lambda: frames_in(again) > 0)
            assert display.window("200x150, 60 fps - texelflow")
            display.press("q")

        out, again, config = tmp_path / "out.mkv", tmp_path / "out-1.mkv", tmp_path / "live.toml"
        config.touch()
        options = ("--camera", "pattern", "--fps", "60", "--effect", "none", "--backend", "cpu")
        config.write_text('[camera]\nsize = "160x120"\n')
        ended = run(change, *options, "--config", config, "--record", out)
        assert ended.code == 0, ended.lines
        for path, size in ((out, (160, 120)), (again, (200, 150))):
            with FileSource(path) as file:
                assert file.format.size == size

    @exhaustive
    def test_a_camera_that_is_not_there_leaves_the_one_before(self, display: Display, tmp_path: Path) -> None:
        def change(process: "subprocess.Popen[str]") -> None:
            display.window("texelflow")
            running_until(process, lambda: frames_in(out) > 0)
            config.write_text('[camera]\ncamera = "gone.mp4"\n')
            running_until(process, lambda: frames_in(again) > 0)
            assert display.window("160x120, 60 fps - texelflow")
            display.press("q")

        out, again, config = tmp_path / "out.mkv", tmp_path / "out-1.mkv", tmp_path / "live.toml"
        config.write_text('[camera]\ncamera = "pattern"\nsize = "160x120"\n')
        options = ("--fps", "60", "--effect", "none", "--backend", "cpu")
        ended = run(change, *options, "--config", config, "--record", out)
        assert ended.code == 0, ended.lines
        with FileSource(again) as file:
            assert file.format.size == (160, 120)

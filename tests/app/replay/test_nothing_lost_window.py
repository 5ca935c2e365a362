"""Windows that record and are closed, interrupted or killed: what was written until then is whole."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.clips import Recipe, moving, write_clip
from tests.helpers.display import Display
from tests.helpers.markers import exhaustive, one_in
from tests.helpers.running import Running, events_of, pictures_of, rows_of, times_of

UNDER_WAY = 8  # frames between the device and the file
GOP = 15  # frames that a recording may lack at its end if it was killed


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """50 s, which nobody waits for."""
    recipe = Recipe(codec_options={"crf": "30", "preset": "ultrafast"})
    return write_clip(tmp_path_factory.mktemp("clip") / "played.mp4", moving(1500), recipe)


def press_q(display: Display, running: Running) -> None:
    display.window("played.mp4")
    display.press("q")


def close(display: Display, running: Running) -> None:
    display.ask_to_close(display.window("played.mp4"))


def send(number: int) -> Callable[[Display, Running], None]:
    return lambda display, running: running.send(number)


@one_in(
    5,
    ("end", "code"),
    [(press_q, 0), (close, 0), (send(signal.SIGINT), 130), (send(signal.SIGTERM), 143), (send(signal.SIGKILL), -9)],
    ids=["q", "closed", "SIGINT", "SIGTERM", "SIGKILL"],
)
def test_the_end_of_a_recording_window(
    end: Callable[[Display, Running], None], code: int, clip: Path, tmp_path: Path, display: Display
) -> None:
    out, log, trace, masks = (tmp_path / name for name in ("out.mp4", "x.json", "t.json", "masks"))
    outputs = ["--out", out, "--log", log, "--trace", trace, "--masks", masks]
    with Running("replay", clip, "--window", "--backend", "cpu", *outputs) as running:
        running.until(lambda: len(rows_of(log)) > 20)
        end(display, running)
        found, line = running.end()
    rows = len(rows_of(log))
    assert found == code
    assert 20 < rows < 1500
    lost = UNDER_WAY + GOP if code == -9 else 0
    assert rows - lost <= len(times_of(out)) <= rows + UNDER_WAY
    assert events_of(trace)
    assert code == -9 or len(pictures_of(masks)) == rows
    if code > 0:
        assert line == f"texelflow: interrupted after {rows} frames; what was written is complete"


@exhaustive
def test_a_signal_while_a_window_opens_and_compiles(clip: Path, tmp_path: Path, display: Display) -> None:
    out = tmp_path / "out.mp4"
    out.write_bytes(b"an older recording")
    with Running("replay", clip, "--window", "--backend", "gl", "--out", out, "--force") as running:
        maps = Path(f"/proc/{running.process.pid}/maps")
        running.until(lambda: "llvm" in maps.read_text().casefold())
        running.send(signal.SIGTERM)
        assert running.end() == (143, "texelflow: interrupted")
    assert out.read_bytes() == b"an older recording"

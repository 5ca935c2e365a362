"""Recordings one after the other by one engine: each as if it were the only one, and nothing left behind."""

import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.app.session.test_recovery import at_frames
from tests.helpers.clips import Recipe, moving, numbered, write_clip
from tests.helpers.gpu_resets import GpuResets
from tests.helpers.living import living
from tests.helpers.markers import exhaustive
from tests.model_files.frame_models import class_network
from texelflow.app.console import Console
from texelflow.app.replay.replay import replay
from texelflow.app.replay.replay_engine import ReplayEngine
from texelflow.app.replay.replay_options import ReplayOptions
from texelflow.gpu_delegate.base.errors import DeviceError, MediaError
from texelflow.gpu_delegate.targets.gl.program_cache import VARIABLE as PROGRAM_CACHE

pytestmark = pytest.mark.gl

FRAMES = 4


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two of one format, one of another size, one of another color matrix, and the first once more."""
    folder = tmp_path_factory.mktemp("clips")
    (folder / "classes.tflite").write_bytes(class_network((48, 32)))
    first = write_clip(folder / "first.mp4", moving(FRAMES, 64, 48))
    return [
        first,
        write_clip(folder / "dark.mp4", numbered(FRAMES, 64, 48)),
        write_clip(folder / "large.mp4", moving(FRAMES, 96, 64)),
        write_clip(folder / "matrix.mkv", moving(FRAMES, 96, 64), Recipe(color=(1, 2))),
        first,
    ]


def flags_of(clip: Path, out: Path, **flags: object) -> dict[str, object]:
    """A small network that lies beside the clips, and smooth masks."""
    network = {"model": str(clip.with_name("classes.tflite")), "channel": "1"}
    return {"out": str(out / "picture.mp4"), "masks": str(out / "masks.mkv"), **network, **flags}


def render(clip: Path, out: Path, engine: ReplayEngine | None, **flags: object) -> dict[str, bytes]:
    """The files of one replay."""
    out.mkdir()
    summary, code = replay(ReplayOptions(clip, flags_of(clip, out, **flags)), Console(quiet=True), engine=engine)
    assert (summary["frames"], code) == (FRAMES, 0)
    return {path.name: path.read_bytes() for path in out.iterdir()}


LOOKS: list[Mapping[str, object]] = [
    {"backend": "cpu", "effect": "blur", "preprocessing": "auto"},
    {"backend": "gl", "effect": "replace", "preprocessing": "auto"},
]


@exhaustive
@pytest.mark.parametrize("look", LOOKS, ids=["cpu", "gl"])
def test_each_is_as_if_it_were_the_only_one(clips: list[Path], tmp_path: Path, look: Mapping[str, object]) -> None:
    alone = {clip: render(clip, tmp_path / f"alone {clip.stem}", None, **look) for clip in clips[:-1]}
    contexts = []
    with ReplayEngine(Console(quiet=True)) as engine:
        for number, clip in enumerate(clips):
            assert render(clip, tmp_path / str(number), engine, **look) == alone[clip], clip.name
            contexts.append(engine.context)
    assert all(context is contexts[0] for context in contexts), "one for all"


def test_nothing_is_left_on_the_device(clips: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROGRAM_CACHE, "0")  # programs that it gives have no shaders
    counts = []
    with ReplayEngine(Console(quiet=True)) as engine:
        for number in range(4):
            render(clips[number % 2 * 2], tmp_path / str(number), engine, backend="gl")
            assert engine.context
            counts.append({kind: len(names) for kind, names in living(engine.context).items()})
    assert counts[2:] == counts[:2]
    assert counts[0]["Program"] > 0, "the network's own are kept"


def test_what_is_damaged_does_no_harm_to_the_next(clips: list[Path], tmp_path: Path) -> None:
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(b"no video")
    alone = render(clips[0], tmp_path / "alone", None)
    with ReplayEngine(Console(quiet=True)) as engine:
        assert render(clips[0], tmp_path / "one", engine) == alone
        with pytest.raises(MediaError):
            replay(ReplayOptions(bad, flags_of(clips[0], tmp_path)), Console(quiet=True), engine=engine)
        assert render(clips[0], tmp_path / "two", engine) == alone


def test_a_context_that_is_lost(
    clips: list[Path], tmp_path: Path, gpu: GpuResets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recording at hand goes on with another one, which those behind it have, too."""
    alone = render(clips[0], tmp_path / "alone", None, backend="gl")
    with ReplayEngine(Console(quiet=True)) as engine:
        assert render(clips[0], tmp_path / "before", engine, backend="gl") == alone
        before = engine.context
        with monkeypatch.context() as patched:
            at_frames(patched, gpu.reset, 2)
            assert render(clips[0], tmp_path / "meanwhile", engine, backend="gl") == alone
        assert engine.context is not before
        assert render(clips[0], tmp_path / "behind", engine, backend="gl") == alone


def test_a_device_that_is_lost_for_good_is_opened_anew(
    clips: list[Path], tmp_path: Path, gpu: GpuResets, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ReplayEngine(Console(quiet=True)) as engine:
        with monkeypatch.context() as patched:
            at_frames(patched, gpu.reset, *range(FRAMES))
            with pytest.raises(DeviceError):
                render(clips[0], tmp_path / "lost", engine, backend="gl")
        assert engine.context is None
        render(clips[0], tmp_path / "behind", engine, backend="gl")


def test_a_replay_is_stopped_from_another_thread(clips: list[Path], tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "long.mp4", moving(500, 64, 48))
    with ReplayEngine(Console(quiet=True)) as engine:

        def report(done: int, total: int) -> None:
            if done == 2:
                threading.Thread(target=engine.stopping.set).start()

        options = ReplayOptions(clip, flags_of(clips[0], tmp_path))
        summary, _ = replay(options, Console(quiet=True), report, engine)
        assert summary["interrupted"]
        assert 2 <= summary["frames"] < 500

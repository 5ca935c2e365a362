"""The same replay again and again in one process: what it takes of the device, memory and the system levels off."""

import contextlib
import gc
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clips import Recipe, moving, write_clip
from tests.living import living
from texelflow.app.console import Console
from texelflow.app.frame.canvas import Canvas
from texelflow.app.frame.looks import LookOptions, choose_look
from texelflow.app.frame.machine import machine_in
from texelflow.app.frame.pipeline import Pipeline
from texelflow.app.frame.segmenter import make_segmenter
from texelflow.app.frame.targets import OffscreenTarget
from texelflow.app.media.sources import FileSource
from texelflow.app.models.loading import load_segmentation
from texelflow.app.replay.replay import replay
from texelflow.app.replay.replay_options import ReplayOptions
from texelflow.app.replay.replay_outputs import open_outputs
from texelflow.gpu_delegate.context import Context

pytestmark = pytest.mark.gl

WARM_UP, ROUNDS = 5, 8
MOST_BLOCKS = 400  # of Python's memory for each replay: moderngl never frees the names of the driver's extensions
MOST_GROWTH_BYTES = 24 << 20  # what allocators keep goes up and down; a leak of one decoder in each replay is more


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clip(tmp_path_factory.mktemp("clip") / "clip.mp4", moving(10), Recipe(sound="aac"))


@dataclass(frozen=True)
class Held:
    """What this process holds."""

    files: int
    threads: int
    blocks: int
    resident_bytes: int


def held() -> Held:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    files = len(os.listdir("/proc/self/fd"))
    return Held(files, threading.active_count(), sys.getallocatedblocks(), pages * os.sysconf("SC_PAGESIZE"))


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["gl", "cpu"])
def test_replays_level_off(backend: str, clip: Path, tmp_path: Path) -> None:
    options = ReplayOptions(
        clip, tmp_path / "out.mp4", masks=tmp_path / "masks", log=tmp_path / "x.json", trace=tmp_path / "t.json",
        backend=backend, force=True,
    )  # fmt: skip

    def run(count: int) -> Held:
        for _ in range(count):
            summary, code = replay(options, Console(quiet=True))
            assert (code, summary["frames"]) == (0, 10)
        return held()

    before, after = run(WARM_UP), run(ROUNDS)
    assert (after.files, after.threads) == (before.files, before.threads)
    assert after.blocks - before.blocks < ROUNDS * MOST_BLOCKS
    assert after.resident_bytes - before.resident_bytes < MOST_GROWTH_BYTES


def test_a_replay_frees_all_its_objects_of_opengl(context: Context, clip: Path, tmp_path: Path) -> None:
    """In a context that outlives it, as no replay's own does."""

    def count() -> dict[str, int]:
        return {kind: len(names) for kind, names in living(context).items()}

    def run() -> dict[str, int]:
        options = ReplayOptions(clip, tmp_path / "out.mp4", masks=tmp_path / "masks", backend="gl", force=True)
        with contextlib.ExitStack() as stack:
            source = stack.enter_context(FileSource(clip))
            machine = machine_in(context, "gl", Console(quiet=True))
            segmenter = make_segmenter(machine, load_segmentation("selfie"), source.format, "stretch", Console(True))
            stack.callback(segmenter.release)
            target = OffscreenTarget(context, source.format.upright_size)
            stack.callback(target.release)
            canvas = Canvas(context, segmenter, target, "stretch", choose_look(LookOptions("blur")))
            stack.callback(canvas.release)
            outputs = open_outputs(options, source.info, context, segmenter, (target, canvas), stack)
            pipeline = Pipeline([*segmenter.stages, canvas.stage, *outputs.stages], context)
            stack.callback(pipeline.release)
            for frame in source:
                pipeline.submit(frame)
            return count()

    run()  # what the context itself keeps of a first one, such as the program that was used last
    before = count()
    at_work = run()
    for kind in ("Buffer", "Texture", "Program", "Framebuffer", "VertexArray"):
        assert at_work[kind] > before[kind], kind
    assert count() == before

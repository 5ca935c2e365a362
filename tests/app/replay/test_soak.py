"""The same replay again and again in one process: what it takes of the device, memory and the system levels off."""

import contextlib
import gc
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.helpers.clips import Recipe, moving, write_clip
from tests.helpers.living import living
from tests.helpers.markers import exhaustive
from texelflow.app.console import Console
from texelflow.app.frame.inference.backends import ComputeBackend
from texelflow.app.frame.stages.run_stats import RunStats
from texelflow.app.models.model_loading import load_segmentation
from texelflow.app.replay.replay import replay, source_to_run
from texelflow.app.replay.replay_options import ReplayOptions
from texelflow.app.session.session_opening import SessionHost, open_session
from texelflow.gpu_delegate.targets.gl.context import Context

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


@exhaustive
@pytest.mark.parametrize("backend", ["gl", "cpu"])
def test_replays_level_off(backend: str, clip: Path, tmp_path: Path) -> None:
    flags = {"out": str(tmp_path / "out.mp4"), "masks": str(tmp_path / "masks"), "backend": backend}
    options = ReplayOptions(clip, flags, log=tmp_path / "x.json", trace=tmp_path / "t.json", force=True)

    def run(count: int) -> Held:
        for _ in range(count):
            summary, code = replay(options, Console(quiet=True))
            assert (code, summary["frames"]) == (0, 10)
        return held()

    before, after = run(WARM_UP), run(ROUNDS)
    assert (after.files, after.threads) == (before.files, before.threads)
    assert after.blocks - before.blocks < ROUNDS * MOST_BLOCKS
    assert after.resident_bytes - before.resident_bytes < MOST_GROWTH_BYTES


@exhaustive
def test_a_replay_frees_all_its_objects_of_opengl(context: Context, clip: Path, tmp_path: Path) -> None:
    """In a context that outlives it, as no replay's own does."""

    def count() -> dict[str, int]:
        return {kind: len(names) for kind, names in living(context).items()}

    def run() -> dict[str, int]:
        flags = {"out": str(tmp_path / "out.mp4"), "masks": str(tmp_path / "masks"), "backend": "gl", "effect": "blur"}
        options = ReplayOptions(clip, flags)
        watch, console = options.watch(), Console(quiet=True)
        with contextlib.ExitStack() as stack:
            _, source = source_to_run(options, watch.settings, stack)
            machine, model = ComputeBackend("gl", context), load_segmentation("selfie")
            host = SessionHost("replay", machine, watch, console, RunStats(), lambda line: None)
            opened = open_session(host, source, model, watch.settings, lambda settings: None)
            session = stack.enter_context(opened)
            session.run(lambda: False)
            session.finish()
            assert host.stats.frames == 10
            return count()

    run()  # what the context itself keeps of a first one, such as the program that was used last
    before = count()
    at_work = run()
    for kind in ("Buffer", "Texture", "Program", "Framebuffer", "VertexArray"):
        assert at_work[kind] > before[kind], kind
    assert count() == before

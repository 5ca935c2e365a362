"""One worker does input after input: what it takes of memory, of the system and of the device levels off."""

import ctypes
import os
from pathlib import Path

import cv2
import pytest

from tests.app.replay.test_soak import MOST_GROWTH_BYTES, Held, held
from tests.helpers.clips import Recipe, moving, write_clip
from tests.helpers.living import living
from tests.helpers.markers import exhaustive
from tests.model_files.frame_models import class_network
from texelflow.app.archive.jobs.archive_options import ArchiveOptions
from texelflow.app.archive.jobs.jobs import ArchiveInput, InputDone, OpenInput
from texelflow.app.archive.jobs.worker_config import WorkerConfig
from texelflow.app.archive.rendering.archive_worker import ArchiveWorker
from texelflow.app.archive.staging.staging import prepare_staging

pytestmark = pytest.mark.gl

WARM_UP, INPUTS = 5, int(os.environ.get("SOAK_RECORDINGS", "5"))
MOST_BLOCKS = 100  # of Python's memory for each input


@exhaustive
@pytest.mark.parametrize("backend", ["cpu", "gl"])
def test_a_worker_levels_off(backend: str, tmp_path: Path) -> None:
    (tmp_path / "classes.tflite").write_bytes(class_network((48, 32)))
    out, named = tmp_path / "out", {"model": str(tmp_path / "classes.tflite"), "channel": "1", "effect": "replace"}
    staged = prepare_staging(ArchiveOptions((), out, {**named, "backend": backend}).watch().settings, out)
    worker = ArchiveWorker(WorkerConfig(out, staged.settings, with_masks=True))
    inputs = [
        write_clip(tmp_path / "one.mp4", moving(6, 64, 48), Recipe(sound="aac")),
        write_clip(tmp_path / "two.mp4", moving(6, 96, 64)),
        tmp_path / "shot.png",
        tmp_path / "bad.mp4",
        write_clip(tmp_path / "three.mp4", moving(6, 64, 48)),
    ]
    cv2.imwrite(str(inputs[2]), moving(1, 64, 48)[0])
    inputs[3].write_bytes(b"no video")

    def run(count: int) -> tuple[Held, dict[str, int]]:
        for number in range(count):
            path = inputs[number % len(inputs)]
            outcome = worker.run(OpenInput(ArchiveInput(number, str(path), path.stem)))
            assert isinstance(outcome, InputDone) == (path.stem != "bad"), outcome
        context = worker._engine.context
        assert (context is None) == (backend == "cpu")
        if trims := getattr(ctypes.CDLL(None), "malloc_trim", None):
            trims(0)  # what is only kept for later comes and goes
        return held(), {kind: len(names) for kind, names in (living(context) if context else {}).items()}

    (before, objects_before), (after, objects_after) = run(WARM_UP), run(INPUTS // WARM_UP * WARM_UP)
    assert objects_after == objects_before
    assert (after.files, after.threads) == (before.files, before.threads)
    assert after.blocks - before.blocks < INPUTS * MOST_BLOCKS
    assert after.resident_bytes - before.resident_bytes < MOST_GROWTH_BYTES
    worker.close()

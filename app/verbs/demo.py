"""`texelflow demo`: segments the embedded clip to a recording, a still and a log of its frames, checked on the CPU.

Where OpenGL cannot compute (macOS), all is done on the CPU, and there is nothing to check. On a display, a window
plays the clip after that.
"""

from contextlib import AbstractContextManager
from importlib import resources
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl.context import open_context

from ..console import Console
from ..files import Files, Read, Write, settle
from ..frame.backend_choice.compute import work_on_cpu
from ..frame.backend_choice.frame_job import GlFrameJob
from ..frame.inference.backends import Backend, CpuChoice
from ..frame.inference.cpu_path import CpuPath
from ..frame.inference.masks import MaskDifference, compare_masks
from ..media.recorder import write_png
from ..media.sources import FileSource
from ..models.catalogue import model_path
from ..models.model_loading import SegmentationModel, load_segmentation
from ..outputs.png_files import make_folder
from ..picture.convert import Rgba
from ..picture.preprocess import Floats
from ..replay.replay import replay
from ..replay.replay_options import ReplayOptions
from .verb_tables import show_replay

CHECK_EVERY = 10  # frames
STILL = 110  # the frame of the still, one of those checked: two people
FOLDER = Path("out")  # where nobody names one
_GAP = 8  # pixels between the still's panels


def demo(
    given: Path | None, model_name: str, console: Console, force: bool = False, cpu: CpuChoice | None = None
) -> tuple[dict[str, Any], int]:
    """Write demo.mp4, demo.png and demo.json: the figures and the exit code. Raises TexelflowError.

    With `cpu` that is how the CPU does it.

    They go into the folder that was given, or into one of the program's own, where those of a demo before are renewed.
    """
    folder = given or FOLDER
    with demo_clip() as clip:
        reads = Read("the input itself", clip), Read("the model", model_path(model_name))
        settle(Files(reads, (Write("--out", folder, "demo", "kept" if given else "renewed"),)), force)
        make_folder(folder)
        with console.download() as progress:
            model = load_segmentation(model_name, progress=progress)
        video, backend = folder / "demo.mp4", "cpu" if cpu else _backend(console)
        flags = {"out": str(video), "effect": "replace", "model": model_name, "backend": backend, **_flags(cpu)}
        options = ReplayOptions(clip, flags, log=folder / "demo.json", force=True)
        summary, code = replay(options, console)
        if code:
            return summary, code
        checked, still_mask = _check(clip, model) if backend == "gl" else ([], _mask_of_still(clip, model))
        write_png(folder / "demo.png", _still(clip, video, still_mask))
    show_replay(summary, console)
    agreement = _agreement(checked) if checked else {}
    if agreement:
        console.table("Agreement of GPU and CPU", ("figure", "value"), [(k, f"{v:.6g}") for k, v in agreement.items()])
    console.say(f"written: {folder / 'demo.png'}")
    return {**summary, "agreement": agreement}, 0


def demo_clip() -> AbstractContextManager[Path]:
    """The embedded clip as a file, in the with-block."""
    return resources.as_file(resources.files("texelflow.assets") / "people.mp4")


def _backend(console: Console) -> Backend:
    """OpenGL, software too, since the demo shows what the engine does; the CPU where it cannot compute, with a line."""
    try:
        open_context().release()
    except DeviceError as error:
        console.note(f"{str(error).partition(';')[0]}: {work_on_cpu(draws=True)}")
        return "cpu"
    return "gl"


def _flags(cpu: CpuChoice | None) -> dict[str, object]:
    return {"cpu": cpu.engine, "threads": cpu.threads} if cpu else {}


def watch_demo(model_name: str, console: Console, cpu: CpuChoice | None = None) -> int:
    """Play the clip in a window, which closes at the end if nobody has touched it: the exit code.

    A display on which no window can be opened gives a message, but is not a failure.
    """
    console.note("the clip in a window: ? lists its keys, q closes it")
    with demo_clip() as clip:
        flags = {"effect": "replace", "model": model_name, **_flags(cpu)} | ({"backend": "cpu"} if cpu else {})
        options = ReplayOptions(clip, flags, window=True, closes=True)
        try:
            _, code = replay(options, console)
        except DeviceError as error:
            console.warn(str(error))
            return 0
    return code


def _check(clip: Path, model: SegmentationModel) -> tuple[list[MaskDifference], Floats]:
    """Every tenth frame's mask on the GPU against the CPU's, and the GPU's mask of the still."""
    differences: list[MaskDifference] = []
    still_mask: Floats = np.zeros((0, 0), np.float32)
    with open_context() as context, FileSource(clip) as source:
        gpu, cpu = GlFrameJob(context, model, source.format), CpuPath(model, source.format, as_read=True)
        for frame in source:
            if frame.index % CHECK_EVERY == 0:
                mask = gpu.run(frame.picture)
                differences.append(compare_masks(frame.index, mask, cpu.run(frame.picture)))
                still_mask = mask if frame.index == STILL else still_mask
    return differences, still_mask


def _mask_of_still(clip: Path, model: SegmentationModel) -> Floats:
    """The CPU's mask of the still."""
    with FileSource(clip, STILL, STILL) as source:
        return CpuPath(model, source.format).run(next(iter(source)).picture)


def _agreement(checked: list[MaskDifference]) -> dict[str, float]:
    """What the comparisons came to."""
    worst = max(checked, key=lambda difference: difference.max_error)
    return {
        "frames compared": len(checked),
        "largest mask error": worst.max_error,
        "in frame": worst.frame,
        "mean mask error": float(np.mean([difference.mean_error for difference in checked])),
        "least IoU at 0.5": min(difference.iou for difference in checked),
        "most pixels that differ": max(difference.pixels for difference in checked),
    }


def _still(clip: Path, video: Path, mask: Floats) -> Rgba:
    """One frame, its mask and the result, side by side."""
    source, result = _frame(clip), _frame(video)
    gray = np.rint(np.clip(mask, 0, 1) * 255).astype(np.uint8)
    shown = np.asarray(cv2.cvtColor(gray, cv2.COLOR_GRAY2RGBA), np.uint8)
    gap = np.full((source.shape[0], _GAP, 4), 255, np.uint8)
    return np.hstack([source, gap, shown, gap, result])


def _frame(path: Path) -> Rgba:
    with FileSource(path, STILL, STILL) as source:
        return next(iter(source)).rgba

"""`texelflow bench frame --stages`: times each stage of a whole frame, drawn and read, on OpenGL and on the CPU.

The stages and the pipeline are those of replay, with frames as recordings have them. The pipeline waits for the device
after each stage, so that times of both ways are wall clock of finished work. What goes up on the CPU is copied in RAM.
"""

import contextlib
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter, perf_counter_ns, process_time
from typing import Any

import av
import numpy as np

from texelflow.gpu_delegate.base.errors import DeviceError, UsageError
from texelflow.gpu_delegate.base.wording import counted, sized
from texelflow.gpu_delegate.plan.compile_options import COMPILE_DEFAULTS
from texelflow.gpu_delegate.targets.gl.context import open_context

from ..console import Console
from ..frame.backend_choice.found_frame import FoundFrame
from ..frame.backend_choice.whole_frame import USUAL_EFFECT, WholeFrame
from ..frame.finding.finder_opening import fetch_partners
from ..frame.finding.finding_stage import FIND
from ..frame.inference.backends import ComputeBackend, CpuChoice
from ..frame.inference.frame_segmenter import make_segmenter
from ..frame.inference.network_options import NetworkOptions
from ..frame.looks.effects import Effect
from ..frame.stages.frame_pipeline import DECODE, FramePipeline, FrameRecord, Stage
from ..frame.stages.stats import summarize
from ..frame.textures.native_pictures import NativePictures
from ..frame.textures.yuv import i420
from ..models.finding_loading import ShownModel, load_shown_model
from ..models.finding_model import FindingModel
from ..outputs.native_readers import NativeReaders
from ..outputs.picture_readers import DeviceReaders, FrameReader, FrameReaders, FrameStamp
from ..picture.convert import Rgba
from ..picture.picture import PictureFormat
from ..picture.video_frame import FrameMaker, VideoFrame
from ..session.model_stages import KEPT_FRAMES
from ..settings.flags import flag_of
from ..settings.settings import Settings, with_values
from ..verbs.tune import tune_first
from .frame_bench_options import FrameBench, check_frame_bench, frames_of

WAYS = ("gl", "cpu")
TOTAL = "total"

_FRAME_MS = 1000 / 30
_READ = "read"
_MOVED = (("uploaded_bytes", "up"), ("readback_bytes", "back"))
_ROWS = ("upload", "image_to_tensor", "network", FIND, "refine", "composite", _READ, TOTAL)


@dataclass(frozen=True)
class StagesBench:
    """What `bench frame --stages` is asked to do: `ways` are WAYS, or the one that was asked for by name.

    The backend of `frame` has no meaning here.
    """

    frame: FrameBench
    ways: Sequence[str] = WAYS
    effect: str | None = None  # None: the usual one


def bench_stages(options: StagesBench, console: Console) -> tuple[dict[str, Any], int]:
    """The figures of each way, or `why` it cannot be had; and the exit code, 1 if none can be had.

    Raises TexelflowError, DeviceError for a way that was asked for by name.
    """
    effect, of_frame = _checked(options)
    rgba = frames_of(of_frame)
    with console.download() as progress:
        model = load_shown_model(of_frame.model, progress=progress)
        if isinstance(model, FindingModel):
            fetch_partners(model, progress)
    usual: Effect = "findings" if isinstance(model, FindingModel) else USUAL_EFFECT
    frames, ways = _as_recorded(rgba), dict[str, dict[str, Any]]()
    for way in options.ways:
        try:
            ways[way] = _measured(replace(of_frame, backend=way), model, frames, effect or usual, console)
        except DeviceError as error:
            if len(options.ways) == 1:
                raise
            ways[way] = {"why": str(error)}
    figures = {
        "model": model.name,
        "size": list(frames[0].size),
        "precision": of_frame.compiling.precision,
        "runs": of_frame.runs,
        "ways": ways,
    }
    return figures, 0 if any("stages" in way for way in ways.values()) else 1


def show_bench_stages(figures: Mapping[str, Any], console: Console) -> None:
    """The same as a table, a column for each way; those that cannot be had are lines."""
    ways: Mapping[str, Any] = figures["ways"]
    found = {name: way for name, way in ways.items() if "stages" in way}
    if found:
        (width, height), effects = figures["size"], dict.fromkeys(way["effect"] for way in found.values())
        had = [row for row in _ROWS if any(row in way["stages"] for way in found.values())]
        rows = [(row, *(_cell(way["stages"].get(row)) for way in found.values())) for row in had]
        title = (
            f"A whole frame, {width}x{height}, {', '.join(effects)}: ms (median/p95), bytes up to the device and back"
        )
        console.table(title, ("stage", *found), rows)
    for name, way in ways.items():
        console.say(f"{name}: {_said(way)}")


def _said(way: Mapping[str, Any]) -> str:
    """What a way runs on, and what it takes of all cores; or why it cannot be had."""
    if "why" in way:
        return str(way["why"])
    found = f", {counted(way['found'], 'thing')} found" if "found" in way else ""
    return f"{way['renderer']}; {way['cpu_ms']:.1f} ms of the CPU's time a frame{found}"


def _cell(figures: Mapping[str, Any] | None) -> str:
    """One stage's in words; nothing where there is none."""
    if figures is None:
        return ""
    moved = [f"{sized(figures[key])} {word}" for key, word in _MOVED if figures[key]]
    return ", ".join([f"{figures['median_ms']:.2f}/{figures['p95_ms']:.2f}", *moved])


def _checked(options: StagesBench) -> tuple[Effect | None, FrameBench]:
    """The effect that was asked for, and what is asked of any way. Raises UsageError."""
    of_frame = options.frame
    if len(options.ways) > 1 and of_frame.compiling != COMPILE_DEFAULTS:
        raise UsageError("--precision, --memory and --planner are for one way: add --backend gl or --backend cpu")
    for way in options.ways:
        check_frame_bench(replace(of_frame, backend=way))
    asked = options.effect
    return with_values(Settings(), {"effect": asked}, flag_of).effect if asked else None, of_frame


def _as_recorded(rgba: Sequence[Rgba]) -> list[VideoFrame]:
    """Frames (H, W, 4) with planes of yuv420p, as most recordings have them."""
    decoded = [av.VideoFrame.from_ndarray(np.array(each), "rgba").reformat(format="yuv420p") for each in rgba]
    maker = FrameMaker("frames", decoded[0])
    return [maker.make(n, n, 40.0 * n, each, perf_counter_ns()) for n, each in enumerate(decoded)]


@contextlib.contextmanager
def _compute(options: FrameBench, model: ShownModel, console: Console) -> Iterator[ComputeBackend]:
    """One way. Raises DeviceError where it cannot be had."""
    if options.backend == "cpu":
        cpu = options.cpu or CpuChoice()
        native = NativePictures(cpu.threads or None)
        try:
            yield ComputeBackend("cpu", None, cpu, native)
        finally:
            native.release()
        return
    tune_first(model.graph, options.compiling.precision, console)
    with open_context() as context:
        yield ComputeBackend("gl", context)


def _measured(
    options: FrameBench, model: ShownModel, frames: Sequence[VideoFrame], effect: Effect, console: Console
) -> dict[str, Any]:
    with contextlib.ExitStack() as stack:
        compute, start = stack.enter_context(_compute(options, model, console)), perf_counter()
        whole = _whole(compute, model, frames[0].picture.format, options, effect, console)
        stack.callback(whole.release)
        stages, uploads = _counted([*whole.stages, _reading(compute, whole, stack)], lambda: whole.uploaded_bytes)
        pipeline = FramePipeline(stages, compute.context, lambda: whole.uploaded_bytes, timing="wall")
        stack.callback(pipeline.release)
        pipeline.submit(frames[0])
        init_ms = (perf_counter() - start) * 1e3
        if compute.context:
            compute.context.calls.settle()
        _run(pipeline, frames, range(1, 1 + options.warmup))
        [*_] = pipeline.drain()
        worked = process_time()
        _run(pipeline, frames, range(1 + options.warmup, 1 + options.warmup + options.runs))
        worked = process_time() - worked
        records = [*pipeline.drain()][-options.runs :]
        runs_on = replace(compute, backend=whole.backend)
        return {
            "renderer": runs_on.renderer(whole.on_cpu),
            "gl_version": compute.gl_version,
            "effect": whole.effect,
            "init_ms": round(init_ms, 2),
            "cpu_ms": round(worked * 1e3 / options.runs, 3),
            **({"found": len(whole.found())} if isinstance(whole, FoundFrame) else {}),
            "stages": _by_stage(records, {name: counts[-options.runs :] for name, counts in uploads.items()}),
        }


def _whole(
    compute: ComputeBackend,
    model: ShownModel,
    frame: PictureFormat,
    options: FrameBench,
    effect: Effect,
    console: Console,
) -> WholeFrame | FoundFrame:
    network = NetworkOptions(options.compiling, preprocessing="auto")
    if isinstance(model, FindingModel):
        return FoundFrame(compute, model, frame, network, effect, KEPT_FRAMES)
    segmenter = make_segmenter(compute, model, frame, network, console, KEPT_FRAMES)
    return WholeFrame(compute, segmenter, network.fit, effect)


def _reading(compute: ComputeBackend, whole: WholeFrame | FoundFrame, stack: contextlib.ExitStack) -> Stage:
    """Reads the picture as I420, as recordings are written. Raises DeviceError."""
    readers: FrameReaders
    if compute.native:
        readers = NativeReaders(compute.native, whole.canvas)
    else:
        assert compute.context, "OpenGL draws in one"
        readers = DeviceReaders(compute.context, whole.canvas)
    stack.callback(readers.release)
    reader: FrameReader = readers.open(None, i420(readers.size))
    stack.callback(reader.release)

    def read(frame: VideoFrame) -> None:
        reader.request(FrameStamp(frame.index, frame.pts))
        for _ in reader.collect():
            pass

    return Stage(_READ, read)


def _counted(stages: Sequence[Stage], uploaded: Callable[[], int]) -> tuple[list[Stage], dict[str, list[int]]]:
    """The same stages, and lists that grow by what each of them uploads."""
    uploads: dict[str, list[int]] = {stage.name: [] for stage in stages}

    def counting(stage: Stage) -> Stage:
        def run(frame: VideoFrame) -> None:
            before = uploaded()
            stage.run(frame)
            uploads[stage.name].append(uploaded() - before)

        return replace(stage, run=run)

    return [counting(stage) for stage in stages], uploads


def _run(pipeline: FramePipeline, frames: Sequence[VideoFrame], numbers: range) -> None:
    """Run the frames in turn, 30 a second by their times."""
    gc.collect()
    gc.disable()
    try:
        for number in numbers:
            pipeline.submit(replace(frames[number % len(frames)], time_ms=number * _FRAME_MS))
    finally:
        gc.enable()


def _by_stage(records: Sequence[FrameRecord], uploads: Mapping[str, Sequence[int]]) -> dict[str, dict[str, float]]:
    """Figures of each stage but decoding, and of all together; bytes are those of a frame."""
    frames = [[stage for stage in record.stages if stage.name != DECODE] for record in records]
    found = {}
    for place, stage in enumerate(frames[0]):
        times_ms = [frame[place].cpu_ms for frame in frames]
        back = [frame[place].readback_bytes for frame in frames]
        found[stage.name] = _figures(times_ms, int(median(uploads[stage.name])), int(median(back)))
    moved = [sum(int(each[key]) for each in found.values()) for key, _ in _MOVED]
    found[TOTAL] = _figures([sum(stage.cpu_ms for stage in frame) for frame in frames], *moved)
    return found


def _figures(times_ms: Sequence[float], uploaded_bytes: int, readback_bytes: int) -> dict[str, float]:
    times = summarize(times_ms).rounded()
    moved = {"uploaded_bytes": uploaded_bytes, "readback_bytes": readback_bytes}
    return {"median_ms": times["median_ms"], "p95_ms": times["p95_ms"], **moved}

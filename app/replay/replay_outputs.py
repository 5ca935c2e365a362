"""What a replay draws and computes goes in; what takes each frame of it comes out: a video, PNG files, masks."""

import contextlib
from dataclasses import dataclass
from typing import Protocol

from texelflow.gpu_delegate.context import Context

from ..files import settle
from ..frame.canvas import Canvas
from ..frame.gl_path import GlPath
from ..frame.outputs import (
    CpuMaskOutput,
    GlMaskOutput,
    PictureOutput,
    PngOutput,
    VideoOutput,
    make_folder,
    wants_folder,
)
from ..frame.pipeline import Stage
from ..frame.segmenter import CpuSegmenter
from ..frame.targets import OffscreenTarget
from ..media.recorder import Recorder
from ..media.sources import VideoInfo
from .replay_options import ReplayOptions, files_of


class Output(Protocol):
    """What takes each frame in a stage of its own, and may have frames under way at the end."""

    stage: Stage

    def finish(self) -> None: ...


@dataclass(frozen=True)
class Outputs:
    """All of them, in their order; which of them takes pictures, and the recorder if it makes a video of them."""

    all: tuple[Output, ...]
    pictures: PictureOutput | None
    recorder: Recorder | None

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Of the way of a frame."""
        return tuple(output.stage for output in self.all)


def open_outputs(
    options: ReplayOptions,
    info: VideoInfo,
    context: Context | None,
    segmenter: GlPath | CpuSegmenter,
    picture: tuple[OffscreenTarget, Canvas] | None,
    stack: contextlib.ExitStack,
) -> Outputs:
    """Those that the options ask for; the stack frees them. No file is written yet.

    Raises MediaError, DeviceError, and UsageError for what others have written there meanwhile.
    """
    settle(files_of(options), options.force)  # while a model was fetched and compiled others may have written
    outputs, recorder = list[Output](), None
    shown: PictureOutput | None = None
    if options.out and picture and context:
        target, canvas = picture
        effect = canvas.look.effect
        if wants_folder(options.out, effect):
            shown = PngOutput(context, target, make_folder(options.out), alpha=effect == "cutout")
        else:
            recorder = stack.enter_context(_recorder(options, info))
            shown = VideoOutput(context, target, recorder)
        stack.callback(shown.release)
        outputs.append(shown)
    if options.masks:
        outputs.append(_mask_output(options, info, context, segmenter, stack))
    return Outputs(tuple(outputs), shown, recorder)


def _recorder(options: ReplayOptions, info: VideoInfo) -> Recorder:
    assert options.out is not None
    cut = options.first != 0 or options.last is not None
    sound = options.file if info.has_audio else None
    return Recorder(
        options.out, info.width, info.height, info.time_base, info.average_rate, info.sample_aspect_ratio, sound, cut
    )


def _mask_output(
    options: ReplayOptions,
    info: VideoInfo,
    context: Context | None,
    segmenter: GlPath | CpuSegmenter,
    stack: contextlib.ExitStack,
) -> Output:
    assert options.masks is not None
    folder = make_folder(options.masks)
    if isinstance(segmenter, CpuSegmenter):
        return CpuMaskOutput(segmenter, folder)
    assert context is not None
    output = GlMaskOutput(context, segmenter, (info.width, info.height), folder)
    stack.callback(output.release)
    return output

"""The pipeline's stage that feeds recordings, masks, cutouts and a virtual camera, each begun and ended at will.

Without any of them the stage does nothing, and nothing is read back.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Literal

from texelflow.gpu_delegate.base.errors import TexelflowError
from texelflow.gpu_delegate.targets.gl.context import Context

from ..console import counted
from ..files import check_output
from ..frame.looks.effects import Effect
from ..frame.stages.frame_pipeline import Stage
from ..frame.textures.native_pictures import NativePictures
from ..frame.textures.yuv import gray, i420
from ..models.decoders.found import Finding
from ..names import free_name, next_name
from ..picture.picture import PictureFormat
from ..picture.preprocess import ImageSize
from ..picture.video_frame import VideoFrame
from ..threads import Observer
from .file_sinks import PicturePipeSink, PictureSink, PngSink, SoundSource, Timing, VideoSink, Writing
from .loopback import loopback_advice
from .output_worker import OutputCounts, OutputWorker, Sink
from .picture_readers import Pictures, RamMasks
from .png_files import PIPE, is_picture, wants_folder
from .reader_choice import readers_of
from .virtual_camera import CameraSink

OutputKind = Literal["recording", "masks", "cutouts", "virtual camera", "pictures"]
Channels = Literal[1, 3, 4]

STEM = "texelflow"  # of the names of files for which nobody gave one
_END_S = 10.0  # for what is under way at the end
_QUIET_S = 5.0  # between two lines on dropped frames of one output


class Outputs:
    """What takes frames besides a window. Belongs to the context's thread.

    `observe` may be set: it is called on the outputs' threads with the kind and the times of each frame's writing.
    """

    observe: Callable[[OutputKind, int, float], None] | None = None

    def __init__(
        self,
        device: Context | NativePictures | None,
        pictures: Pictures | RamMasks,
        timing: Timing,
        keeps_all: bool = False,
        folder: Path = Path(),
        writing: Writing | None = None,
        sound: SoundSource | None = None,
        found: Callable[[], tuple[Finding, ...]] = tuple,
    ) -> None:
        """`pictures` are on the context's device, in the CPU's, or RamMasks, of which only masks can be written.

        `keeps_all`: outputs wait for their threads instead of dropping frames, and raise what goes wrong there; else
        that ends one output alone. `folder` is for files for which nobody gave a name. `writing` may be set anew:
        it is that of outputs that begin. `sound` is what is heard meanwhile, for recordings of the picture. `found`
        tells what was found in the last frame.
        """
        self.stage = Stage("record", self._take, lambda: not self._active)
        self.writing, self._sound, self._found = writing or Writing(), sound, found
        self._readers = readers_of(device, pictures, keeps_all)
        self._timing, self._keeps_all, self._folder = timing, keeps_all, folder
        self._active: dict[OutputKind, OutputWorker] = {}
        self._read_as: dict[OutputKind, tuple[Effect | None, PictureFormat | None]] = {}
        self._ending: list[tuple[OutputKind, OutputWorker]] = []
        self._alpha = False
        self._given: set[Path] = set()  # names, which may not be seen on the disk before a frame comes
        self._lines: list[str] = []
        self._warnings: list[str] = []
        self._failures: list[TexelflowError] = []  # not told in lines, but raised
        self._said: dict[OutputKind, tuple[int, float]] = {}  # dropped frames that were told of, and when

    @property
    def active(self) -> tuple[OutputKind, ...]:
        """Those that take frames."""
        return tuple(self._active)

    @property
    def camera_device(self) -> str | None:
        """The virtual camera's, while it is active."""
        worker = self._active.get("virtual camera")
        return worker.sink.device if worker and isinstance(worker.sink, CameraSink) else None

    @property
    def keeps_alpha(self) -> bool:
        """Whether the recording that was begun last keeps the picture's transparency."""
        return self._alpha

    @property
    def need_mask(self) -> bool:
        """Whether one of them shows the mask, whatever the picture shows."""
        return not {"masks", "cutouts"}.isdisjoint(self._active)

    @property
    def show_picture(self) -> bool:
        """Whether one of them shows the picture as it is composited."""
        return any(effect is None for effect, _ in (self._read_as[kind] for kind in self._active))

    @property
    def status(self) -> str:
        """What is being written, in one line; '' if nothing is."""
        return "   ".join(worker.status for worker in self._active.values())

    @property
    def counts(self) -> Mapping[OutputKind, OutputCounts]:
        """Of the active ones."""
        return {kind: worker.counts for kind, worker in self._active.items()}

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line each on what differs from what was asked for, of outputs that have ended."""
        return tuple(self._warnings)

    def begin_recording(self, path: Path | None = None, *, replaces: bool = False, alpha: bool = False) -> None:
        """Begin a video, a PNG file or a folder of those, of the picture; by default a video under the next free name.

        `replaces`: what is there may be written over; else the name gets the next free number. `alpha`: the picture's
        transparency is kept. Raises MediaError, DeviceError, and UsageError for a video that has none.
        """
        path = path or next_name(self._folder, STEM, ".mp4", self._given)
        channels: Channels = 4 if alpha else 3
        if wants_folder(path) or is_picture(path):
            self._begin_png("recording", path, replaces, channels)
        elif str(path) == PIPE and self.writing.pipes_pictures:
            self._begin("recording", PicturePipeSink(self._size, channels), None, None)
        else:
            self._begin_video("recording", path, replaces, self._timing, alpha=alpha)
        self._alpha = alpha

    def begin_masks(self, path: Path, *, replaces: bool = False) -> None:
        """Begin a gray video of the mask, or PNG files of 8-bit gray in a folder. Raises MediaError, DeviceError."""
        if wants_folder(path) or is_picture(path):
            self._begin_png("masks", path, replaces, channels=1, effect="mask")
        else:
            self._begin_video("masks", path, replaces, replace(self._timing, sound=None), effect="mask")

    def begin_cutouts(self, folder: Path, *, replaces: bool = False) -> None:
        """Begin PNG files of the person with a transparent background. Raises MediaError, DeviceError."""
        self._begin_png("cutouts", folder, replaces, channels=4, effect="cutout")

    def begin_virtual_camera(self) -> None:
        """Show other programs the picture. Raises DeviceError, UsageError with one line on what is missing."""
        self.end("virtual camera")
        for kind, worker in self._ending:
            if kind == "virtual camera":  # the one before lets go of the device first
                worker.wait(_END_S)
        camera = CameraSink(self._size, float(self._timing.rate))
        width, height = self._size
        line = f"{camera.name}: {width}x{height} {'NV12' if camera.format.layout == 'nv12' else 'I420'}"
        self._begin("virtual camera", camera, None, camera.format, line)
        self._lines += loopback_advice()

    def begin_pictures(self, taker: Sink) -> None:
        """Hand the picture to somebody in this program, as RGBA. Raises DeviceError."""
        self._begin("pictures", taker, None, None)

    def mute(self, muted: bool) -> None:
        """Have recordings get silence, or sound again."""
        if self._sound:
            self._sound.muted = muted

    def end(self, kind: OutputKind, complete: bool = False) -> None:
        """End an output, if it is active; what is under way is still written, and a line tells when that is done.

        `complete`: the source has ended, too, and its sound is copied to the end.
        """
        if kind in self._active:
            worker = self._active.pop(kind)
            self._ending.append((kind, worker))
            worker.end(complete)

    def lines(self) -> list[str]:
        """Lines for the user since the last call: what began, what was written, what was dropped or failed."""
        for kind, worker in self._active.items():
            self._tell_of_drops(kind, worker)
        if self._ending:
            self._tell_of_ended()
        self._lines += self._sound.lines() if self._sound else []
        lines, self._lines = self._lines, []
        return lines

    def finish(self, complete: bool = True) -> None:
        """End all as end does, and wait until what is under way is written: some seconds, or where every frame counts,
        as long as it takes.

        Raises what went wrong there, MediaError or DeviceError, after all have ended.
        """
        for kind in self.active:
            self.end(kind, complete)
        deadline = perf_counter() + _END_S
        for _, worker in self._ending:
            worker.wait(None if self._keeps_all else max(0.0, deadline - perf_counter()))
        self._tell_of_ended()
        for _, worker in self._ending:
            self._lines.append(f"{worker.sink.name} could not be finished in {_END_S:.0f} s; it ends a little early")
        self._ending = []
        if self._failures:
            raise self._failures[0]

    def deliver(self) -> None:
        """Hand all frames that were read to the threads, waiting for the device. Raises ContextLostError."""
        for worker in self._active.values():
            worker.deliver()

    def lose_device(self) -> int | None:
        """Let go of the device, whose context is lost; the number of the last frame that all outputs have, if any."""
        last = [worker.lose_reader() for worker in self._active.values()]
        self._readers.release()
        return min((number for number in last if number is not None), default=None) if None not in last else None

    def renew_device(self, device: Context | NativePictures, pictures: Pictures) -> None:
        """Go on with another context, after lose_device. Raises DeviceError."""
        self._readers = readers_of(device, pictures, self._keeps_all)
        for kind, worker in self._active.items():
            worker.renew_reader(self._readers.open(*self._read_as[kind]))

    def release(self) -> None:
        """Free what is on the device, after finishing; where every frame counts, what finish left is given up."""
        if self._keeps_all:
            self._give_up()
        else:
            self.finish()
        self._readers.release()

    def _give_up(self) -> None:
        """Close all files now, whatever still waits, after an error elsewhere."""
        self._ending += self._active.items()
        self._active.clear()
        for _, worker in self._ending:
            worker.give_up()
        self._tell_of_ended()

    @property
    def _size(self) -> ImageSize:
        return self._readers.size

    def _named(self, path: Path, replaces: bool) -> Path:
        """The name under which files go."""
        return path if replaces else free_name(path, self._given)

    def _begin_png(
        self, kind: OutputKind, given: Path, replaces: bool, channels: Channels, effect: Effect | None = None
    ) -> None:
        path, make = self._named(given, replaces), PictureSink if is_picture(given) else PngSink
        sink = make(path, self._size, channels, self.writing.made_by)
        self._given.add(path)
        self._begin(kind, sink, effect, gray(self._size) if channels == 1 else None)

    def _begin_video(
        self,
        kind: OutputKind,
        path: Path,
        replaces: bool,
        timing: Timing,
        effect: Effect | None = None,
        alpha: bool = False,
    ) -> None:
        """Read as I420, 1.5 bytes a pixel, but for transparency, and where the readers do not take that."""
        if str(path) != PIPE:
            check_output(path)
            path = self._named(path, replaces)
        codes = i420(self._size)
        format = codes if not alpha and self._readers.takes(codes) else None
        sound = self._sound.track() if self._sound and kind == "recording" else None
        sink = VideoSink(path, self._size, timing, format is not None, self.writing, alpha, sound)
        self._given.add(path)
        self._begin(kind, sink, effect, format)

    def _begin(
        self, kind: OutputKind, sink: Sink, effect: Effect | None, format: PictureFormat | None, line: str = ""
    ) -> None:
        """`line` tells of the beginning where there is more to say than where it goes."""
        self.end(kind)
        try:
            reader = self._readers.open(effect, format)
            self._read_as[kind] = effect, format
            self._active[kind] = OutputWorker(reader, sink, self._keeps_all, self._observer(kind))
        except BaseException:
            sink.close(complete=False)
            raise
        self._said.pop(kind, None)
        self._lines.append(line or f"{kind} to {sink.name}")

    def _observer(self, kind: OutputKind) -> Observer:
        def tell(start_ns: int, took_ms: float) -> None:
            if self.observe:
                self.observe(kind, start_ns, took_ms)

        return tell

    def _take(self, frame: VideoFrame) -> None:
        for kind, worker in list(self._active.items()):
            if worker.size != self._size:
                self._lines.append(f"{worker.sink.name} ends here: pictures have another size from now on")
                self.end(kind)
                continue
            worker.take(frame, self._found())
            if failure := worker.failure():
                self.end(kind)
                if self._keeps_all:
                    raise failure

    def _tell_of_ended(self) -> None:
        """Of each of them once."""
        for kind, worker in [each for each in self._ending if each[1].ended]:
            self._ending.remove((kind, worker))
            self._warnings += worker.sink.warnings
            failure, dropped = worker.failure(), worker.counts.dropped
            lost = f", {counted(dropped, 'frame')} dropped" if dropped and not worker.sink.newest_wins else ""
            if failure is None:
                self._lines.append(f"{worker.last_line}{lost}")
            elif self._keeps_all:
                self._failures.append(failure)
            else:
                self._lines.append(f"{kind} ended: {failure}")

    def _tell_of_drops(self, kind: OutputKind, worker: OutputWorker) -> None:
        said, when = self._said.get(kind, (0, -_QUIET_S))
        dropped, now = worker.counts.dropped, perf_counter()
        if dropped > said and now - when >= _QUIET_S and not worker.sink.newest_wins:
            lost = counted(dropped - said, "frame")
            self._lines.append(f"{lost} dropped from {worker.sink.name}: the disk or the encoder does not keep up")
            self._said[kind] = dropped, now

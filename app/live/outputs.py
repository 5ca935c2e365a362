"""Pictures of frames go in; recordings, mattes, cut-outs and a virtual camera come out, each begun and ended at will.

Without any of them the stage does nothing, and nothing is read back.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Literal, Protocol

from texelflow.gpu_delegate.context import Context

from ..console import counted
from ..files import check_output
from ..frame.effects import Effect
from ..frame.outputs import wants_folder
from ..frame.pipeline import Stage
from ..frame.targets import OffscreenTarget
from ..frame.yuv import YuvPicture, grey, i420
from ..names import free_name, next_name
from ..picture.picture import PictureFormat
from ..picture.preprocess import ImageSize
from ..picture.video_frame import VideoFrame
from .branch import Branch, Counts, Sink
from .loopback import advice
from .recording import PngSink, VideoSink
from .virtual_camera import VirtualCamera

Kind = Literal["recording", "mattes", "cutouts", "virtual camera"]

STEM = "texelflow"  # of the names of files for which nobody gave one
_END_S = 10.0  # for what is under way at the end
_QUIET_S = 5.0  # between two lines on dropped frames of one output


class Pictures(Protocol):
    """What outputs show: the picture as it is composited, and the same frame with another effect."""

    @property
    def target(self) -> OffscreenTarget: ...

    def drawn(self, effect: Effect) -> OffscreenTarget: ...


class LiveOutputs:
    """What takes frames besides the window. Belongs to the context's thread."""

    def __init__(self, context: Context, pictures: Pictures, fps: float, folder: Path = Path()) -> None:
        """`fps` is the source's, 0 if unknown; `folder` is for files for which nobody gave a name."""
        self.stage = Stage("record", self._take)
        self._context, self._pictures, self._fps, self._folder = context, pictures, fps, folder
        self._active: dict[Kind, Branch] = {}
        self._ending: list[tuple[Kind, Branch]] = []
        self._yuv: dict[PictureFormat, YuvPicture] = {}  # kept, so that only the first beginning takes its time
        self._given: set[Path] = set()  # names, which may not be seen on the disk before a frame comes
        self._lines: list[str] = []
        self._said: dict[Kind, tuple[int, float]] = {}  # dropped frames that were told of, and when

    @property
    def active(self) -> tuple[Kind, ...]:
        """Those that take frames."""
        return tuple(self._active)

    @property
    def need_mask(self) -> bool:
        """Whether one of them shows the mask, whatever the picture shows."""
        return not {"mattes", "cutouts"}.isdisjoint(self._active)

    @property
    def status(self) -> str:
        """What is written now, for a person; '' if nothing is."""
        return "   ".join(branch.status for branch in self._active.values())

    @property
    def counts(self) -> Mapping[Kind, Counts]:
        """Of the active ones."""
        return {kind: branch.counts for kind, branch in self._active.items()}

    def begin_recording(self, path: Path | None = None) -> None:
        """Begin a video of the picture, by default under the next free name. Raises MediaError, DeviceError."""
        if path is not None:
            check_output(path)
            path = free_name(path, self._given)
        else:
            path = next_name(self._folder, STEM, ".mp4", self._given)
        self._begin_video("recording", path, lambda: self._pictures.target)

    def begin_mattes(self, path: Path) -> None:
        """Begin a grey video of the mask, or PNG files of 8-bit grey in a folder. Raises MediaError, DeviceError."""
        if not wants_folder(path, "mask"):
            check_output(path)
            self._begin_video("mattes", free_name(path, self._given), self._mattes)
            return
        self._begin("mattes", self._png(path, channels=1), self._mattes, grey(self._size))

    def begin_cutouts(self, folder: Path) -> None:
        """Begin PNG files of the person with a transparent background. Raises MediaError, DeviceError."""
        self._begin("cutouts", self._png(folder, channels=4), self._cutouts, None)

    def begin_virtual_camera(self) -> None:
        """Show other programs the picture. Raises DeviceError, UsageError with one line on what is missing."""
        self.end("virtual camera")
        for kind, branch in self._ending:
            if kind == "virtual camera":  # the one before lets go of the device first
                branch.wait(_END_S)
        camera = VirtualCamera(self._size, self._fps)
        width, height = self._size
        line = f"{camera.name}: {width}x{height} {'NV12' if camera.format.layout == 'nv12' else 'I420'}"
        self._begin("virtual camera", camera, lambda: self._pictures.target, camera.format, line)
        self._lines += advice()

    def end(self, kind: Kind) -> None:
        """End an output, if it is active; what is under way is still written, and a line tells when that is done."""
        if kind in self._active:
            branch = self._active.pop(kind)
            branch.end()
            self._ending.append((kind, branch))

    def lines(self) -> list[str]:
        """What a person should know since the last call."""
        for kind, branch in self._active.items():
            self._tell_of_drops(kind, branch)
        self._bury()
        lines, self._lines = self._lines, []
        return lines

    def finish(self) -> None:
        """End all, and wait until what is under way is written, but not for ever."""
        for kind in self.active:
            self.end(kind)
        deadline = perf_counter() + _END_S
        for _, branch in self._ending:
            branch.wait(max(0.0, deadline - perf_counter()))
        self._bury()
        for _, branch in self._ending:
            self._lines.append(f"{branch.sink.name} could not be finished in {_END_S:.0f} s; it ends a little early")
        self._ending = []

    def release(self) -> None:
        """Free what is on the device, after finishing."""
        self.finish()
        for yuv in self._yuv.values():
            yuv.release()
        self._yuv.clear()

    @property
    def _size(self) -> ImageSize:
        return self._pictures.target.size

    def _mattes(self) -> OffscreenTarget:
        return self._pictures.drawn("mask")

    def _cutouts(self) -> OffscreenTarget:
        return self._pictures.drawn("cutout")

    def _png(self, folder: Path, channels: Literal[1, 4]) -> PngSink:
        path = free_name(folder, self._given)
        sink = PngSink(path, self._size, channels)
        self._given.add(path)
        return sink

    def _begin_video(self, kind: Kind, path: Path, picture: Callable[[], OffscreenTarget]) -> None:
        sink = VideoSink(path, self._size, self._fps)
        self._given.add(path)
        self._begin(kind, sink, picture, i420(self._size))

    def _begin(
        self,
        kind: Kind,
        sink: Sink,
        picture: Callable[[], OffscreenTarget],
        format: PictureFormat | None,
        line: str = "",
    ) -> None:
        """`line` tells of the beginning where there is more to say than where it goes."""
        self.end(kind)
        try:
            if format and format not in self._yuv:
                self._yuv[format] = YuvPicture(self._context, format)
            yuv = self._yuv[format] if format else None
            self._active[kind] = Branch(self._context, self._size, picture, yuv, sink)
        except BaseException:
            sink.close()
            raise
        self._said.pop(kind, None)
        self._lines.append(line or f"{kind} to {sink.name}")

    def _take(self, frame: VideoFrame) -> None:
        for kind, branch in list(self._active.items()):
            if branch.size != self._size:
                self._lines.append(f"{branch.sink.name} ends here: pictures have another size from now on")
                self.end(kind)
            else:
                branch.take(frame)
                if branch.failure():
                    self.end(kind)

    def _bury(self) -> None:
        """Tell of those that have ended."""
        self._lines += [_epitaph(kind, branch) for kind, branch in self._ending if branch.ended]
        self._ending = [(kind, branch) for kind, branch in self._ending if not branch.ended]

    def _tell_of_drops(self, kind: Kind, branch: Branch) -> None:
        said, when = self._said.get(kind, (0, -_QUIET_S))
        dropped, now = branch.counts.dropped, perf_counter()
        if dropped > said and now - when >= _QUIET_S and not branch.sink.newest_wins:
            lost = counted(dropped - said, "frame")
            self._lines.append(f"{lost} dropped from {branch.sink.name}: the disk or the encoder does not keep up")
            self._said[kind] = dropped, now


def _epitaph(kind: Kind, branch: Branch) -> str:
    """What became of an output that has ended."""
    failure, dropped = branch.failure(), branch.counts.dropped
    if failure:
        return f"{kind} ended: {failure}"
    lost = f", {counted(dropped, 'frame')} dropped" if dropped and not branch.sink.newest_wins else ""
    return f"{branch.last_words}{lost}"

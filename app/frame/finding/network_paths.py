"""Opens the way of frames through whichever model is shown: to a mask, to a picture, or to what is found in them."""

from collections.abc import Generator

from texelflow.gpu_delegate.model.layout import Precision

from ...models.finding_loading import ShownModel
from ...models.finding_model import FindingModel
from ...picture.picture import PictureFormat
from ...picture.video_frame import VideoFrame
from ...tracking.finder import FrameFinder
from ..inference.backends import Backend, ComputeBackend
from ..inference.frame_segmenter import CpuSegmenter, segmenter_in_steps
from ..inference.gl_path import GlPath
from ..inference.network_options import NetworkOptions
from ..stages.frame_pipeline import Stage
from ..textures.picture_device import FramePlanes, PictureDevice
from .finder_opening import OpenFinder, finder_in_steps, solution_for
from .region_networks import FrameRegions

__all__ = ["FindingPath", "NetworkPath", "path_in_steps"]


class _OnDevice:
    """Where frames are on the device: networks know of this alone, not of the path that owns it."""

    def __init__(self, pictures: PictureDevice, frame: PictureFormat, kept: int) -> None:
        self.pictures, self.kept = pictures, kept
        self.planes = pictures.planes(frame, kept, measures=True)

    def take(self, frame: PictureFormat) -> None:
        """Frames of another format from now on. Raises DeviceError; then everything is as it was."""
        planes = self.pictures.planes(frame, self.kept, measures=True)
        self.planes.release()
        self.planes = planes


class FindingPath:
    """Frames go up, where they are drawn or networks look at them there, and are seen. There is no mask."""

    picture = classes = None
    delegated = ""

    def __init__(
        self, model: FindingModel, opened: OpenFinder, on_device: _OnDevice | None, precision: Precision
    ) -> None:
        """Takes the finder, and what is on the device, over."""
        self.model, self._opened, self._on_device = model, opened, on_device
        self.backend: Backend = "gl" if opened.on_gpu else "cpu"
        self.precision: Precision = precision if opened.on_gpu or precision == "bf16" else "fp32"
        self.dispatches, self.note, self.on_cpu = opened.dispatches, opened.note, opened.on_cpu

    @property
    def frame(self) -> FramePlanes:
        """The last frame on the device. Raises ValueError where nothing is drawn."""
        if self._on_device is None:
            raise ValueError("there is nothing to draw with")
        return self._on_device.planes

    @property
    def finder(self) -> FrameFinder:
        """What finds things in frames, once they are up."""
        return self._opened.finder

    @property
    def networks(self) -> tuple[FrameRegions, ...]:
        """Those of its solution, in their order."""
        return self._opened.networks

    @property
    def reads_ram(self) -> bool:
        """Whether some of its networks look at frames in RAM."""
        return not self._opened.on_gpu

    @property
    def uploaded_bytes(self) -> int:
        """Of frames, so far."""
        return self._on_device.planes.uploaded_bytes if self._on_device else 0

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The way of a frame up, if it goes there; the finder's stage is others'."""
        if self._on_device is None:
            return ()
        pictures = self._on_device.pictures
        return (Stage("upload", self._upload, lambda: pictures.gathers),)

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        self.finder.begin_anew()

    def renew(self) -> None:
        """Another recording comes, as if it were the first."""
        self._opened = self._opened.renewed()

    def expose_anew(self) -> None:
        """Frames are seen as light as they are."""

    def take(self, frame: PictureFormat) -> None:
        """Take frames of another format from now on. Raises DeviceError."""
        if self._on_device:
            self._on_device.take(frame)
        self._opened.take(frame)

    def _upload(self, frame: VideoFrame) -> None:
        self.frame.upload(frame.picture)

    def release(self) -> None:
        """Free the networks, and what is on the device."""
        self._opened.release()
        if self._on_device:
            self._on_device.planes.release()


NetworkPath = GlPath | CpuSegmenter | FindingPath


def path_in_steps(
    compute: ComputeBackend, model: ShownModel, frame: PictureFormat, options: NetworkOptions, kept: int = 1
) -> Generator[tuple[int, int], None, NetworkPath]:
    """As segmenter_in_steps, for whichever model is shown. Raises TexelflowError."""
    if not isinstance(model, FindingModel):
        path: NetworkPath = yield from segmenter_in_steps(compute, model, frame, options, kept)
        return path
    on_device = _OnDevice(compute.pictures, frame, kept) if compute.pictures else None
    lent = (lambda: on_device.planes) if on_device else None
    try:
        opened = yield from finder_in_steps(compute, solution_for(model), frame, options, lent, model, options.most)
    except BaseException:
        if on_device:
            on_device.planes.release()
        raise
    return FindingPath(model, opened, on_device, options.compiling.precision)

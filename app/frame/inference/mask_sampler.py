"""Compares the masks of some frames with TensorFlow Lite's while a recording runs."""

from dataclasses import replace

from texelflow.gpu_delegate.base.errors import DeviceError, ModelError
from texelflow.gpu_delegate.model.quantization import dequantized

from ...models.model_loading import FrameModel
from ...picture.picture import PictureFormat
from ...picture.preprocess import Fit, Floats, Preprocessing
from ...picture.video_frame import VideoFrame
from ..stages.frame_pipeline import Stage
from .cpu_path import CpuPath, meaning_of
from .frame_segmenter import CpuSegmenter
from .gl_path import GlPath
from .masks import MaskDifference, compare_masks

_LEAST_FRAMES = 60  # of a recording that is sampled for itself; shorter ones share samples
_FOLLOWED = 100  # frames before a sample: of the exposure of earlier ones less than 1e-5 is left by then
_UNKNOWN = 30  # frames that a recording has at least, as far as nobody knows


class SampleSchedule:
    """Which frames are sampled: of so many frames that come, in whichever recordings, about one.

    A recording of some length has one in any case, in its middle; of short ones one now and then.
    """

    def __init__(self) -> None:
        self._waiting: int | None = None  # frames of short recordings, since one of those was sampled

    def offset(self, frames: int | None, every: int) -> int | None:
        """Which frame is the first that is sampled, of `every` one, in a recording of so many frames; None: none is."""
        count = frames or _UNKNOWN
        if count < _LEAST_FRAMES:
            self._waiting = every if self._waiting is None else self._waiting + count
            if self._waiting < every:
                return None
            self._waiting = 0
        return min(every, count) // 2


class MaskSampler:
    """Samples one recording. `differences` are those that were found, by the numbers of frames."""

    def __init__(self, reference: CpuPath, frame: PictureFormat, every: int, offset: int) -> None:
        """Of the frames that the network sees, those with the numbers offset, offset + every and so on are sampled."""
        self._reference, self._every, self._next = reference, every, offset
        self._seen = 0
        reference.take(frame)
        self.differences: list[MaskDifference] = []

    def watching(self, segmenter: GlPath | CpuSegmenter) -> tuple[Stage, ...]:
        """The stages of a segmenter, of which that of the network has its mask sampled."""
        return tuple(
            self._watched(stage, segmenter) if stage.name == "network" else stage for stage in segmenter.stages
        )

    def _watched(self, stage: Stage, segmenter: GlPath | CpuSegmenter) -> Stage:
        def run(frame: VideoFrame) -> None:
            stage.run(frame)
            self._look(frame, segmenter)

        return replace(stage, run=run, gathers=lambda: self._seen < self._next and stage.gathers())

    def _look(self, frame: VideoFrame, segmenter: GlPath | CpuSegmenter) -> None:
        reference = self._reference
        if self._seen < self._next:
            if self._next - self._seen == _FOLLOWED:
                reference.begin_anew()
            if self._next - self._seen <= _FOLLOWED:
                reference.follow(frame.picture)
        else:
            self._next += self._every
            expected = reference.network(reference.image_to_tensor(frame.picture))
            self.differences.append(compare_masks(frame.index, network_mask(segmenter), expected))
        self._seen += 1


def open_reference(model: FrameModel, frame: PictureFormat, fit: Fit, preprocessing: Preprocessing) -> CpuPath | None:
    """TensorFlow Lite's way from a picture to a mask; None where that is not installed, or refuses the model.

    None as well of a network that remembers: it would have to see all frames, not a sample of them.
    """
    if model.remembers:
        return None
    try:
        return CpuPath(model, frame, fit, preprocessing=preprocessing, as_read=True)
    except (DeviceError, ModelError):
        return None


def network_mask(segmenter: GlPath | CpuSegmenter) -> Floats:
    """The mask (H, W), or the picture (H, W, 4), of the frame that the network saw last, on its own grid."""
    if isinstance(segmenter, CpuSegmenter):
        return segmenter.mask_in_ram
    program, graph = segmenter.program, segmenter.model.graph
    program.context.calls.flush()
    result = graph.tensors[graph.outputs[0]]
    return meaning_of(dequantized(program.read(result.index), result), segmenter.model.spec)

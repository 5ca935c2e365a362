"""Networks on regions of a frame by OpenCV and TensorFlow Lite, which all others are held against.

With `in_bytes` pixels are whole numbers from 0 to 255, at places of whole 32nds, to the bit as MediaPipe has them.
"""

import math
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

import texelflow
from texelflow.app.models.catalogue import fetch
from texelflow.app.models.decoders.found import Finding
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.models.decoders.suppression import detections_by_anchors
from texelflow.app.models.finding_loading import load_finding_model
from texelflow.app.picture.color_planes import Floats
from texelflow.app.picture.convert import Rgba
from texelflow.app.picture.picture import ImageSize
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.app.tracking.finder import FrameFinder
from texelflow.app.tracking.solutions import Solution
from texelflow.app.tracking.tracking_finder import make_finder
from texelflow.gpu_delegate.cpu.interpreter_module import load_interpreter_module

__all__ = ["OracleNetwork", "oracle_finder", "oracle_network"]

_CUSTOM_OPS = ("face-landmark-attention",)  # which TensorFlow Lite lacks: these run in our own interpreter


class OracleNetwork:
    """A model of the catalogue on regions."""

    def __init__(self, name: str, in_bytes: bool = False) -> None:
        self.model = load_finding_model(name)
        self._border = cv2.BORDER_REPLICATE if self.model.repeats_edges else cv2.BORDER_CONSTANT
        self._in_bytes = in_bytes
        self._interpreter = _interpreter(name)
        self.regions: list[FrameRegion] = []  # that were looked at

    @property
    def input_size(self) -> ImageSize:
        return self.model.input_size

    def tensor(self, frame: VideoFrame, region: FrameRegion) -> Floats:
        """Its input (1, H, W, 3) for a region."""
        low, high = self.model.input_range
        rgb = np.ascontiguousarray(frame.rgba[..., :3])
        cut = self._cut_in_bytes(rgb, region) if self._in_bytes else self._cut(rgb, region)
        return (cut.astype(np.float32) / 255 * (high - low) + low)[None]

    def _cut(self, rgb: Rgba, region: FrameRegion) -> npt.NDArray[Any]:
        matrix = region.to_frame() / (*self.input_size, 1)
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        return cv2.warpAffine(rgb.astype(np.float32), matrix, self.input_size, flags=flags, borderMode=self._border)

    def _cut_in_bytes(self, rgb: Rgba, region: FrameRegion) -> npt.NDArray[Any]:
        """By OpenCV's functions that MediaPipe's converter calls."""
        width, height = self.input_size
        middle, size = (region.center_x, region.center_y), (abs(region.width), region.height)
        corners = cv2.boxPoints((middle, size, math.degrees(region.angle)))
        wanted = np.array([[0, height], [0, 0], [width, 0], [width, height]], np.float32)
        if region.width < 0:
            wanted[:, 0] = width - wanted[:, 0]
        matrix = cv2.getPerspectiveTransform(corners, wanted)
        return cv2.warpPerspective(rgb, matrix, self.input_size, flags=cv2.INTER_LINEAR, borderMode=self._border)

    def outputs(self, tensor: Floats) -> list[Floats]:
        """Those that its decoder reads."""
        run = self._interpreter
        run.set_tensor(run.get_input_details()[0]["index"], tensor)
        run.invoke()
        details = run.get_output_details()
        return [np.asarray(run.get_tensor(details[place]["index"]), np.float32) for place in self.model.decoding.reads]

    def find(self, frame: VideoFrame, region: FrameRegion) -> tuple[Finding, ...]:
        """As a RegionNetwork does."""
        self.regions.append(region)
        outputs, decoding = self.outputs(self.tensor(frame, region)), self.model.decoding
        if decoding.anchors:
            outputs = [detections_by_anchors(decoding.anchors, outputs)]
        return decoding.decode(outputs, region)


@lru_cache
def oracle_network(name: str, in_bytes: bool = False) -> OracleNetwork:
    """The same for all who ask: networks have no memory."""
    return OracleNetwork(name, in_bytes)


def oracle_finder(solution: Solution, most: int | None = None, in_bytes: bool = False) -> FrameFinder:
    """A solution by such networks."""
    networks = [oracle_network(name, in_bytes) for name in solution.models]
    return make_finder(solution, networks, most)


def _interpreter(name: str) -> Any:
    path = str(fetch(name))
    made = texelflow.Interpreter(path) if name in _CUSTOM_OPS else load_interpreter_module().Interpreter(path)
    made.allocate_tensors()
    return made

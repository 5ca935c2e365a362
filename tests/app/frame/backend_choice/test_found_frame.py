"""A whole frame of what finds things: with `sees_each` all of its networks take their time, whatever is there."""

import contextlib

import numpy as np
import pytest

from texelflow.app.frame.backend_choice.found_frame import FoundFrame
from texelflow.app.frame.finding.native_regions import NativeRegions
from texelflow.app.frame.inference.backends import ComputeBackend, CpuChoice
from texelflow.app.frame.inference.network_options import NETWORK_DEFAULTS
from texelflow.app.frame.textures.native_pictures import NativePictures
from texelflow.app.models.decoders.found import Finding
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.models.finding_loading import load_finding_model
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.app.picture.video_frame import VideoFrame


@pytest.mark.parametrize("sees_each", [False, True])
def test_which_networks_see_a_frame_without_anybody(sees_each: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, find = list[str](), NativeRegions.find

    def found(network: NativeRegions, frame: VideoFrame, region: FrameRegion) -> tuple[Finding, ...]:
        seen.append(network.model.name)
        return find(network, frame, region)

    monkeypatch.setattr(NativeRegions, "find", found)
    model, gray = load_finding_model("face-landmark"), np.full((48, 64, 4), 99, np.uint8)
    compute = ComputeBackend("cpu", None, CpuChoice("native", 1), NativePictures(1))
    with contextlib.ExitStack() as stack:
        stack.callback(compute.end_drawing)
        whole = FoundFrame(compute, model, rgba_format((64, 48)), NETWORK_DEFAULTS, sees_each=sees_each)
        stack.callback(whole.release)
        picture = whole.run(rgba_picture(gray))
    assert picture.shape == gray.shape
    assert seen == ["face-detection-short", *["face-landmark"] * sees_each]

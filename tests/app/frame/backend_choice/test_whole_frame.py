"""A whole frame: both ways draw the same picture of a frame, by stages in their order, and free what they hold."""

import numpy as np
import pytest

from tests.app.frame.inference.test_native_path import segmenting
from tests.helpers.picture_formats import noise
from texelflow.app.console import Console
from texelflow.app.frame.backend_choice.whole_frame import WholeFrame
from texelflow.app.frame.inference.backends import ComputeBackend, CpuChoice
from texelflow.app.frame.inference.frame_segmenter import make_segmenter
from texelflow.app.frame.inference.network_options import NetworkOptions
from texelflow.app.frame.looks.effects import Effect
from texelflow.app.frame.textures.native_pictures import NativePictures
from texelflow.app.models.model_loading import FrameModel, PictureModel
from texelflow.app.models.spec import PictureSpec
from texelflow.app.picture.picture import rgba_format
from texelflow.gpu_delegate.targets.gl.context import Context

FORMAT = rgba_format((70, 46))
OPTIONS = NetworkOptions(preprocessing="auto")
MASKS = segmenting("softmax", 3)
PICTURES = PictureModel("picture", segmenting("none", 3).graph, PictureSpec((0.0, 1.0), (-1.0, 1.0)), (26, 18), (13, 9))


def opened(compute: ComputeBackend, model: FrameModel, effect: Effect) -> WholeFrame:
    return WholeFrame(compute, make_segmenter(compute, model, FORMAT, OPTIONS, Console(quiet=True)), "stretch", effect)


@pytest.mark.parametrize(("model", "effect"), [(MASKS, "replace"), (MASKS, "mask"), (PICTURES, "picture")])
def test_both_ways_draw_the_same_picture(model: FrameModel, effect: Effect, context: Context) -> None:
    native = NativePictures(threads=1)
    found, wanted = (
        opened(compute, model, effect)
        for compute in (ComputeBackend("cpu", None, CpuChoice("native", 1), native), ComputeBackend("gl", context))
    )
    picture = noise(FORMAT)
    picture.planes[0][:, 40:, :2] //= 8  # where the mask is another one
    for _ in range(2):  # the second frame follows the first
        made = found.run(picture)
        np.testing.assert_allclose(made.astype(int), wanted.run(picture).astype(int), rtol=0, atol=2)
    assert made.shape == (46, 70, 4)
    assert made[..., :3].std() > 5
    assert found.effect == wanted.effect == effect
    names = [stage.name for stage in wanted.stages]
    assert names == ["upload", "image_to_tensor", "network", *(["refine"] if model is MASKS else []), "composite"]
    assert sorted(names) == sorted(stage.name for stage in found.stages)
    assert wanted.uploaded_bytes >= 2 * 70 * 46 * 4
    for whole in (found, wanted):
        whole.release()
    native.release()


def test_a_network_that_cannot_have_the_effect_has_its_own(context: Context) -> None:
    whole = opened(ComputeBackend("gl", context), PICTURES, "blur")
    assert whole.effect == "picture"
    whole.release()


def test_the_segmenter_is_freed_where_nothing_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    compute = ComputeBackend("cpu", None, CpuChoice("native", 1))
    segmenter, freed = make_segmenter(compute, MASKS, FORMAT, OPTIONS, Console(quiet=True)), list[bool]()
    with monkeypatch.context() as patched:
        patched.setattr(segmenter, "release", lambda: freed.append(True))
        with pytest.raises(ValueError, match="nothing to draw with"):
            WholeFrame(compute, segmenter, "stretch")
    assert freed == [True]
    segmenter.release()

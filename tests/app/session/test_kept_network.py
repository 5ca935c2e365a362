"""A network is kept for the next recording, unless it remembers what it saw."""

from typing import Any, cast

import pytest

from tests.app.frame.inference.test_native_path import remembering, segmenting
from texelflow.app.models.model_loading import SegmentationModel
from texelflow.app.picture.picture import rgba_format
from texelflow.app.session.kept_network import KeptNetwork


class Released:
    is_released = False

    def release(self) -> None:
        self.is_released = True


@pytest.mark.parametrize(("model", "remembers"), [(remembering(), True), (segmenting("none", 1), False)])
def test_what_remembers_is_freed(model: SegmentationModel, remembers: bool) -> None:
    kept, segmenter = KeptNetwork(), Released()
    options = cast("Any", None)
    kept.keep(cast("Any", segmenter), cast("Any", None), model, rgba_format((64, 48)), options, 1)
    assert segmenter.is_released == remembers
    kept.release()
    assert segmenter.is_released

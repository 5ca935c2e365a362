"""Several classes make one mask: how they are named, what a person is, and masks of all backends against NumPy."""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest

import texelflow
from tests.helpers.markers import one_in
from tests.helpers.pictures import noise
from tests.model_files.frame_models import class_network
from texelflow.app.frame.inference.cpu_path import CpuPath
from texelflow.app.models.class_names import classes_of_people, find_classes
from texelflow.app.models.model_loading import load_segmentation
from texelflow.app.models.spec import SpecOptions
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.app.picture.preprocess import Floats
from texelflow.gpu_delegate.base.errors import UsageError

PARTS = ("background", "hair", "body-skin", "face-skin", "clothes", "others (accessories)")
SIZE = (64, 48)
ASKED: list[tuple[int | str, tuple[int, ...]]] = [
    ("hair,clothes", (1, 4)),
    (" Clothes , HAIR,4", (4, 1)),
    ("2,1", (2, 1)),
    ("others (accessories)", (5,)),
    ("person", (1, 2, 3, 4, 5)),
    (3, (3,)),
]


@pytest.mark.parametrize(("wanted", "found"), ASKED)
def test_classes_are_named_in_a_list(wanted: int | str, found: tuple[int, ...]) -> None:
    assert find_classes(wanted, PARTS, 6) == found


def test_a_label_may_have_a_comma() -> None:
    assert find_classes("hat, scarf", ["background", "hat, scarf", "hat"], 3) == (1,)


def test_what_is_wrong_with_a_list_is_said() -> None:
    with pytest.raises(UsageError, match=r"channel cloths: no such class; did you mean clothes\?"):
        find_classes("hair,cloths", PARTS, 6)
    with pytest.raises(UsageError, match="channel 6: the model's output has the classes 0 to 5"):
        find_classes("1,6", PARTS, 6)
    with pytest.raises(UsageError, match="channel : no such class"):
        find_classes("hair,", PARTS, 6)
    with pytest.raises(UsageError, match="channel person: no such class; there are cat, dog"):
        find_classes("person", ["cat", "dog"], 2)


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (PARTS, (1, 2, 3, 4, 5)),
        (("hair", "background", "skin"), (0, 2)),
        (("background", "cat", "person", "dining table"), (2,)),
        (("background", "People"), (1,)),
        (("background", "head", "torso", "upper arms", "lower legs"), (1, 2, 3, 4)),
        (("background", "hair", "cat"), ()),
        (("background", "clock face"), ()),
        (("hair", "skin"), ()),
        (("background", "hat", "shoe"), ()),
        ((), ()),
    ],
)
def test_people_are_known_by_labels(labels: tuple[str, ...], found: tuple[int, ...]) -> None:
    assert classes_of_people(labels) == found


def expected(scores: Floats, activation: str, shown: list[int]) -> Floats:
    """By the definition: the sum after a softmax, else the greatest."""
    values = scores.astype(np.float64)
    if activation == "softmax":
        powers = np.exp(values)
        return np.asarray((powers / powers.sum(-1, keepdims=True))[..., shown].sum(-1), np.float32)
    values = 1 / (1 + np.exp(-values)) if activation == "sigmoid" else np.clip(values, 0, 1)
    return np.asarray(values[..., shown].max(-1), np.float32)


@pytest.mark.gl
@pytest.mark.parametrize("backend", ["gl", "cpu"])
@one_in(3, "activation", ["softmax", "sigmoid", "none"])
def test_a_mask_of_several_classes_is_the_same_everywhere(
    tmp_path: Path, backend: Literal["gl", "cpu"], activation: Literal["none", "sigmoid", "softmax"]
) -> None:
    """Of the network's own size, so that nothing is interpolated; TensorFlow Lite has the scores."""
    path = tmp_path / "parts.tflite"
    path.write_bytes(class_network(SIZE, 6, PARTS))
    frame = noise(SIZE)
    model = load_segmentation(str(path), SpecOptions(activation=activation, channel="face-skin,hair"))
    assert (model.spec.channel, model.spec.group) == (3, (3, 1))
    reference = CpuPath(model, rgba_format(SIZE), as_read=True)
    found = reference.run(rgba_picture(frame))
    wanted = expected(reference.scores[0], activation, [1, 3])
    assert np.abs(np.clip(found, 0, 1) - wanted).max() < 1e-5
    with texelflow.Segmenter(
        path, backend, activation=activation, channel=["face-skin", 1], preprocessing="plain", quiet=True
    ) as segment:
        assert np.abs(segment(frame) - wanted).max() < 1e-4


@pytest.mark.gl
def test_a_group_is_refined_as_one_mask(tmp_path: Path) -> None:
    """On OpenGL, which groups in the shader, as in native code, which does before."""
    path = tmp_path / "parts.tflite"
    path.write_bytes(class_network(SIZE, 6, PARTS))
    frames = [np.ascontiguousarray(np.roll(noise(SIZE)[..., :3], 2 * number, 1)) for number in range(3)]
    with (
        texelflow.Segmenter(path, "gl", channel="person", refine=True, quiet=True) as one,
        texelflow.Segmenter(path, "cpu", channel="person", refine=True, quiet=True) as other,
    ):
        for frame in frames:
            found = one(frame)
            assert np.abs(found - other(frame)).max() <= 2 / 255 + 1e-6
    assert found.mean() > 0.5

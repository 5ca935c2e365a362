"""PosenetDecoderOp against its definition, written out point by point in plain Python."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from flatbuffers import flexbuffers

import texelflow
from tests.helpers.delegated import inferred
from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.base.errors import InferenceError
from texelflow.gpu_delegate.cpu.interpreter_module import load_interpreter_module
from texelflow.gpu_delegate.custom.custom_op import CustomOperator, computed_outputs, shapes_of_outputs
from texelflow.gpu_delegate.custom.posenet import POSENET_DECODER
from texelflow.gpu_delegate.model.graph import Quantization, Tensor

Maps = npt.NDArray[Any]
Point = tuple[float, float]
SIDES = ("eye", "ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle")
NAMES = ["nose", *(f"{side}_{part}" for part in SIDES for side in ("left", "right"))]
PARENTS = (  # parent and child, in the order of the maps
    "nose left_eye, left_eye left_ear, nose right_eye, right_eye right_ear, nose left_shoulder, "
    "left_shoulder left_elbow, left_elbow left_wrist, left_shoulder left_hip, left_hip left_knee, "
    "left_knee left_ankle, nose right_shoulder, right_shoulder right_elbow, right_elbow right_wrist, "
    "right_shoulder right_hip, right_hip right_knee, right_knee right_ankle"
)
PAIRS = [tuple(NAMES.index(name) for name in pair.split()) for pair in PARENTS.split(", ")]


def at(maps: Maps, point: Point, channel: int) -> float:
    y, x = point
    top, left, bottom, right = math.floor(y), math.floor(x), math.ceil(y), math.ceil(x)
    upper = maps[top, left, channel] * (left + 1 - x) + maps[top, right, channel] * (x - left)
    lower = maps[bottom, left, channel] * (left + 1 - x) + maps[bottom, right, channel] * (x - left)
    return float(upper * (top + 1 - y) + lower * (y - top))


def moved(maps: Maps, point: Point, along_y: int, along_x: int) -> Point:
    y, x = point[0] + at(maps, point, along_y), point[1] + at(maps, point, along_x)
    return min(max(y, 0.0), maps.shape[0] - 1.0), min(max(x, 0.0), maps.shape[1] - 1.0)


def apart(one: Point, other: Point) -> float:
    return (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2


def decoded(maps: Sequence[Maps], most: int, least: float, stride: int, radius: float) -> list[Any]:
    """Keypoints, their scores and those of poses, best first; and a mask of each, if there are long-range offsets."""
    heat, short, mid = maps[0][0].astype(float), maps[1][0] / float(stride), maps[2][0] / float(stride)
    near = (radius / stride) ** 2
    roots = []
    for y, x, k in np.ndindex(*heat.shape):
        window = heat[max(0, y - 1) : y + 2, max(0, x - 1) : x + 2, k]
        if heat[y, x, k] >= -math.log(1 / (least + 1e-6) - 1) and heat[y, x, k] >= window.max():
            roots.append((heat[y, x, k], k, moved(short, (y, x), k, 17 + k)))
    poses: list[tuple[list[Point], list[float], float]] = []
    for _, root, start in sorted(roots, reverse=True):
        if len(poses) == most:
            break
        if any(apart(points[root], start) <= near for points, _, _ in poses):
            continue
        found: dict[int, tuple[Point, float]] = {}
        reached = [(at(heat, start, root), root, start)]
        while reached:
            reached.sort()
            score, keypoint, point = reached.pop()
            if keypoint in found:
                continue
            found[keypoint] = point, score
            for number, (parent, child) in enumerate(PAIRS):
                for source, target, y_channel in ((parent, child, number), (child, parent, 32 + number)):
                    if source == keypoint:
                        channel = 16 if y_channel == 32 else y_channel  # the first way back, as the op is defined
                        there = moved(mid, point, channel, channel + 16)
                        for _ in range(5):
                            there = moved(short, there, target, 17 + target)
                        reached.append((at(heat, there, target), target, there))
        scores = [1 / (1 + math.exp(-found[k][1])) for k in range(17)]
        if sum(scores) / 17 >= least:
            poses.append(([found[k][0] for k in range(17)], scores, sum(scores) / 17))
    poses.sort(key=lambda pose: -pose[2])
    final = []
    for number, (points, scores, _) in enumerate(poses):
        free = [all(apart(points[k], better[0][k]) > near for better in poses[:number]) for k in range(17)]
        final.append((sum(score for score, counts in zip(scores, free, strict=True) if counts) / 17, points, scores))
    final = [each for each in sorted(final, key=lambda each: -each[0]) if each[0] >= least]
    keypoints = [[(y * stride, x * stride) for y, x in points] for _, points, _ in final]
    result: list[Any] = [keypoints, [scores for _, _, scores in final], [score for score, _, _ in final]]
    if len(maps) == 4 and final:
        long, masks = maps[3][0] / float(stride), np.zeros((len(final), 33, 33))
        for y, x in np.ndindex(33, 33):
            sums = [0.0] * len(final)
            for k in range(17):
                end: Point = (float(y), float(x))
                for _ in range(3):
                    end = moved(long, end, k, 17 + k)
                for number, points in enumerate(keypoints):
                    sums[number] += apart((end[0] * stride, end[1] * stride), points[k])
            masks[sums.index(min(sums)), y, x] = 1
        result.append(masks)
    return result


def random_maps(seed: int, height: int, width: int, masks: bool = False) -> list[Maps]:
    rng = np.random.default_rng(seed)
    # offsets change little from pixel to pixel, else each step would make rounding errors larger
    depths = ((17, 2.0), (34, 3.0), (64, 16.0), *(((34, 6.0),) if masks else ()))
    return [rng.normal(0, spread, (1, height, width, depth)).astype(np.float32) for depth, spread in depths]


def said(most: int = 8, least: float = 0.4, stride: int = 16, radius: float = 20.0) -> dict[str, Any]:
    return {"max_detections": most, "score_threshold": least, "stride": stride, "nms_radius": radius}


def here(
    maps: Sequence[Maps], options: dict[str, Any], meanings: Sequence[Quantization | None] = (None,) * 4
) -> tuple[Maps, ...]:
    tensors = [
        Tensor(k, f"map {k}", each.shape, each.dtype.name, quantization=meaning)
        for k, (each, meaning) in enumerate(zip(maps, meanings, strict=False))
    ]
    outputs = [Tensor(9 + k, f"output {k}", ()) for k in range(len(maps) + 1)]
    operator = CustomOperator(
        POSENET_DECODER.name, 7, tuple(tensors), tuple(outputs), bytes(flexbuffers.Dumps(options))
    )
    shapes = shapes_of_outputs(POSENET_DECODER, operator)
    shaped = [Tensor(tensor.index, tensor.name, shape) for tensor, shape in zip(outputs, shapes, strict=True)]
    return computed_outputs(POSENET_DECODER, operator, maps, shaped)


def assert_decoded(maps: Sequence[Maps], floats: Sequence[Maps], options: dict[str, Any], found: Sequence[Maps]) -> int:
    points, scores, pose_scores, *masks = decoded(
        floats, *(options[name] for name in ("max_detections", "score_threshold", "stride", "nms_radius"))
    )
    count = int(found[3][0])
    assert count == len(points)
    for ours, wanted in zip(found, (points, scores, pose_scores), strict=False):
        np.testing.assert_allclose(ours[0, :count], np.reshape(wanted, ours[0, :count].shape), rtol=1e-3, atol=1e-3)
        assert not ours[0, count:].any()
    if masks:
        assert (found[4][0, :count] != masks[0]).mean() < 0.002
    return count


@pytest.mark.parametrize(
    ("height", "width", "options"),
    [
        (9, 7, said()),
        (13, 17, said(most=3, stride=24)),
        (5, 5, said(least=0.6)),
        (11, 6, said(radius=60.0, least=0.2)),
        (4, 3, said(least=0.99)),
        (4, 3, said(most=0)),
    ],
)
def test_random_poses(height: int, width: int, options: dict[str, Any]) -> None:
    for seed in range(2):
        maps = random_maps(seed, height, width)
        assert_decoded(maps, maps, options, here(maps, options))


def test_there_are_poses_to_compare() -> None:
    maps = random_maps(0, 9, 7)
    assert assert_decoded(maps, maps, said(), here(maps, said())) > 2


def test_masks() -> None:
    maps = random_maps(2, 33, 33, masks=True)
    assert assert_decoded(maps, maps, said(most=4), here(maps, said(most=4))) == 4


def test_bytes() -> None:
    rng = np.random.default_rng(3)
    maps = [rng.integers(0, 256, (1, 8, 9, depth), np.uint8) for depth in (17, 34, 64)]
    meanings = [Quantization((scale,), (zero,)) for scale, zero in ((0.04, 130), (0.2, 120), (0.7, 128))]
    floats = [
        (each.astype(np.float32) - meaning.zero_points[0]) * np.float32(meaning.scales[0])
        for each, meaning in zip(maps, meanings, strict=True)
    ]
    floats[0] += np.random.default_rng(0).uniform(0, 1e-6, floats[0].shape)  # of equal scores the op leaves it open
    found = here(maps, said(radius=10.0), meanings)
    assert found[3][0] == len(decoded(floats, 8, 0.4, 16, 10.0)[0])


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"stride": 0}, "stride is 0"),
        ({"max_detections": 1 << 20}, "max_detections is 1.04858e"),
        ({"score_threshold": math.nan}, "score_threshold is nan"),
        ({"nms_radius": "wide"}, "nms_radius is no number"),
    ],
)
def test_options_that_make_no_sense(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(InferenceError, match=rf"^operator 7 \(PosenetDecoderOp\): .*{why}"):
        here(random_maps(0, 4, 4), {**said(), **changes})


def test_maps_that_do_not_fit() -> None:
    maps = random_maps(0, 4, 5)
    for wrong in ([maps[1], *maps[1:]], [maps[0], maps[1][:, :3], maps[2]], maps[:2], [*maps, maps[1]]):
        with pytest.raises(InferenceError, match=r"^operator 7 \(PosenetDecoderOp\): "):
            here(wrong, said())


def test_scores_that_are_no_numbers() -> None:
    maps = random_maps(0, 6, 6)
    maps[0][0, ::2, ::3] = np.nan
    assert here(maps, said())[3].shape == (1,)


@pytest.mark.gl
def test_a_model_that_ends_in_it() -> None:
    """TensorFlow Lite alone has no code for it."""
    model, maps = ModelBuilder(), random_maps(1, 9, 7)
    given = [model.op("NEG", [model.input(each.shape)], each.shape) for each in maps]
    outputs = model.split("PosenetDecoderOp", given, ((), (), (), ()), custom=bytes(flexbuffers.Dumps(said())))
    model.output(*outputs)
    with texelflow.GpuDelegate(quiet=True, min_nodes_per_partition=1) as delegate:
        made = load_interpreter_module(newer=True).Interpreter(
            model_content=model.build(), experimental_delegates=[delegate]
        )
        made.allocate_tensors()
        found = inferred(made, [-each for each in maps])
        assert "1 by functions" in delegate.summary
    for ours, wanted in zip(found, here(maps, said()), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-4)

"""PosenetDecoderOp: heat maps and offsets of PoseNet or BodyPix to poses of 17 keypoints, and to a mask of each person.

The greedy decoding of G. Papandreou et al., "PersonLab", arXiv 1803.08225, as google-coral/libcoral defines the op
(coral/posenet/posenet_decoder.cc): keypoints are taken by descending scores; each one that is no part of a pose yet
starts one, from which mid-range offsets lead along edges to the others. Points are (y, x), in pixels of the heat map
until the end. Poses and masks behind the last pose are zero. Which of two equal scores comes first, it leaves open.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..base.errors import InferenceError
from ..model.graph import Shape, Tensor
from .custom_op import CustomOp, CustomOperator, OpArray
from .option_values import number_option, whole_option

_Maps = npt.NDArray[np.float32]

KEYPOINTS = 17
# From the nose outward: eyes and ears, then arms and legs, left and right; keypoints are numbered as in COCO.
EDGES = (
    *((0, 1), (1, 3), (0, 2), (2, 4)),
    *((0, 5), (5, 7), (7, 9), (5, 11), (11, 13), (13, 15)),
    *((0, 6), (6, 8), (8, 10), (6, 12), (12, 14), (14, 16)),
)
_MASK_SIDE = 33
_REFINEMENTS, _MASK_REFINEMENTS = 5, 2
_MOST_POSES = 1 << 10


@dataclass(frozen=True)
class _Decoding:
    """The op's options."""

    poses: int
    least_score: float
    stride: int
    squared_radius: np.float32  # in pixels of the heat map


@dataclass(frozen=True)
class _Pose:
    points: _Maps  # (17, 2)
    scores: _Maps  # (17,), from 0 to 1

    @property
    def score(self) -> np.float32:
        return _mean(self.scores)


def _decoding(operator: CustomOperator) -> _Decoding:
    options = operator.options
    stride = whole_option(options, "stride", 1, 1 << 15)
    radius = np.float32(number_option(options, "nms_radius")) / np.float32(stride)
    least = number_option(options, "score_threshold")
    if not 0 <= least <= 1:
        raise InferenceError(f"its option score_threshold is {least:g}, not a number from 0 to 1")
    return _Decoding(whole_option(options, "max_detections", 0, _MOST_POSES), least, stride, radius * radius)


def _shapes(operator: CustomOperator) -> Sequence[Shape]:
    found, has_masks = _decoding(operator), len(operator.inputs) == 4
    shapes = [() if tensor is None else tensor.shape for tensor in operator.inputs]
    if (len(shapes), len(operator.outputs)) not in ((3, 4), (4, 5)):
        raise InferenceError(f"{len(shapes)} inputs and {len(operator.outputs)} outputs, not 3 and 4 or 4 and 5")
    depths = (KEYPOINTS, 2 * KEYPOINTS, 4 * len(EDGES), 2 * KEYPOINTS)
    for number, (shape, depth) in enumerate(zip(shapes, depths, strict=False)):
        size = (_MASK_SIDE, _MASK_SIDE) if number == 3 else shapes[0][1:3]
        if len(shape) != 4 or shape != (1, *size, depth) or 0 in shape:
            raise InferenceError(f"input {number} of shape {list(shape)}, not {[1, *size, depth]}")
    count = found.poses
    usual = (1, count, KEYPOINTS, 2), (1, count, KEYPOINTS), (1, count), (1,)
    return (*usual, (1, count, _MASK_SIDE, _MASK_SIDE)) if has_masks else usual


def _decode(inputs: Sequence[OpArray], operator: CustomOperator) -> list[OpArray]:
    decoding, shapes = _decoding(operator), _shapes(operator)
    scales = (np.float32(1), *[np.float32(1 / decoding.stride)] * 3)
    maps = [_floats(*each) for each in zip(inputs, operator.inputs, scales, strict=False)]
    poses = _by_final_scores(_poses(maps[0], maps[1], maps[2], decoding), decoding)
    out = [np.zeros(shape, np.float32) for shape in shapes]
    for number, (pose, score) in enumerate(poses):
        out[0][0, number] = pose.points * np.float32(decoding.stride)
        out[1][0, number], out[2][0, number] = pose.scores, score
    out[3][0] = len(poses)
    if len(out) == 5 and poses:
        nearest = _nearest_poses(maps[3], out[0][0, : len(poses)], decoding.stride)
        out[4][0, : len(poses)] = nearest == np.arange(len(poses))[:, None, None]
    return [*out]


def _floats(values: OpArray, tensor: Tensor | None, scale: np.float32) -> _Maps:
    """The maps of the one picture, with offsets in pixels of the heat map."""
    if values.dtype == np.float32:
        scaled: _Maps = np.multiply(values[0], scale)
        return scaled
    quantization = tensor.quantization if tensor else None
    if values.dtype != np.uint8 or quantization is None:
        raise InferenceError(f"an input of {values.dtype}, not float32 or uint8 with a scale")
    steps = values[0].astype(np.float32) - np.float32(quantization.zero_points[0])
    found: _Maps = np.multiply(steps, np.float32(quantization.scales[0]) * scale)
    return found


def _poses(heat: _Maps, short: _Maps, mid: _Maps, decoding: _Decoding) -> list[_Pose]:
    """Poses in the order in which they are found."""
    found = list[_Pose]()
    for keypoint, point in _candidates(heat, short, decoding.least_score):
        if len(found) >= decoding.poses:
            break
        if any(_squared(point, pose.points[keypoint]) <= decoding.squared_radius for pose in found):
            continue
        pose = _grown(heat, short, mid, keypoint, point)
        if pose.score >= decoding.least_score:
            found.append(pose)
    return found


def _candidates(heat: _Maps, short: _Maps, least: float) -> Iterator[tuple[int, _Maps]]:
    """Keypoints that no neighbor exceeds, by descending scores, where short-range offsets put them."""
    height, width, _ = heat.shape
    logit = np.float32(-math.log(1 / (least + 1e-6) - 1)) if least + 1e-6 < 1 else np.float32(np.inf)
    around = np.pad(heat, ((1, 1), (1, 1), (0, 0)), constant_values=-np.inf)
    most = np.max([around[y : y + height, x : x + width] for y, x in np.ndindex(3, 3)], axis=0)
    rows, columns, keypoints = np.nonzero((heat >= logit) & (heat >= most))
    for place in np.argsort(-heat[rows, columns, keypoints], kind="stable"):
        row, column, keypoint = int(rows[place]), int(columns[place]), int(keypoints[place])
        offsets = short[row, column, [keypoint, KEYPOINTS + keypoint]]
        yield keypoint, _inside(np.array([row, column], np.float32) + offsets, heat.shape)


def _grown(heat: _Maps, short: _Maps, mid: _Maps, root: int, at: _Maps) -> _Pose:
    """A pose from one keypoint on, always on from the best of those that have been reached."""
    points, scores = np.full((KEYPOINTS, 2), -1, np.float32), np.full(KEYPOINTS, -1e5, np.float32)
    waiting, done = [(-float(_sampled(heat, at, [root])[0]), 0, root, at)], set[int]()
    count = 0
    while waiting:
        negative, _, keypoint, point = heapq.heappop(waiting)
        if keypoint in done:
            continue
        done.add(keypoint)
        points[keypoint], scores[keypoint] = point, -negative
        for target, channel in _edges_from(keypoint):
            if target not in done:
                count += 1
                reached = _followed(short, mid, point, channel, target)
                heapq.heappush(waiting, (-float(_sampled(heat, reached, [target])[0]), count, target, reached))
    return _Pose(points, 1 / (1 + np.exp(-scores)))


def _edges_from(keypoint: int) -> Iterator[tuple[int, int]]:
    """The keypoints at the other ends, and the channel of the way there along y.

    Channels are those of y outward, x outward, y back and x back; the first edge back has those of x outward and of y
    back, which is how the op is defined.
    """
    count = len(EDGES)
    for number, (first, second) in enumerate(EDGES):
        if first == keypoint:
            yield second, number
        if second == keypoint:
            yield first, count + number + (count if number else 0)


def _followed(short: _Maps, mid: _Maps, point: _Maps, channel: int, target: int) -> _Maps:
    """Along an edge, then by the target's short-range offsets some times."""
    point = _inside(point + _sampled(mid, point, [channel, len(EDGES) + channel]), mid.shape)
    for _ in range(_REFINEMENTS):
        point = _inside(point + _sampled(short, point, [target, KEYPOINTS + target]), short.shape)
    return point


def _sampled(maps: _Maps, point: _Maps, channels: Sequence[int] | npt.NDArray[np.int64]) -> _Maps:
    """Channels of maps between four pixels, at points (..., 2) that are inside."""
    (top, left), (bottom, right) = (
        np.moveaxis(rounded(point).astype(np.int64), -1, 0)[..., None] for rounded in (np.floor, np.ceil)
    )
    down, across = np.moveaxis(point - np.floor(point), -1, 0)[..., None]
    upper = (1 - across) * maps[top, left, channels] + across * maps[top, right, channels]
    lower = (1 - across) * maps[bottom, left, channels] + across * maps[bottom, right, channels]
    found: _Maps = np.add((1 - down) * upper, down * lower)
    return found


def _inside(point: _Maps, shape: Shape) -> _Maps:
    return np.clip(point, np.float32(0), np.array([shape[0] - 1, shape[1] - 1], np.float32))


def _squared(one: _Maps, other: _Maps) -> np.float32:
    distance = other - one
    return np.float32((distance * distance).sum())


def _mean(scores: _Maps, counted: npt.NDArray[np.bool_] | None = None) -> np.float32:
    """Of all keypoints, added from the best on; those that are not counted add nothing."""
    order = np.argsort(-scores, kind="stable")
    total = np.float32(0)
    for place in order:
        if counted is None or counted[place]:
            total += scores[place]
    return np.float32(total / np.float32(len(scores)))


def _by_final_scores(poses: Sequence[_Pose], decoding: _Decoding) -> list[tuple[_Pose, np.float32]]:
    """Scores anew, without keypoints that lie on those of better poses; poses by these, as far as they are enough."""
    order = sorted(poses, key=lambda pose: -pose.score)
    found = list[tuple[_Pose, np.float32]]()
    for number, pose in enumerate(order):
        free = np.ones(KEYPOINTS, np.bool_)
        for better in order[:number]:
            distance = pose.points - better.points
            free &= ~((distance * distance).sum(1) <= decoding.squared_radius)
        found.append((pose, _mean(pose.scores, free)))
    return [each for each in sorted(found, key=lambda each: -each[1]) if each[1] >= decoding.least_score]


def _nearest_poses(long: _Maps, poses: _Maps, stride: int) -> npt.NDArray[np.int64]:
    """For each pixel the pose whose keypoints lie nearest to where long-range offsets lead; poses are scaled."""
    rows, columns = np.meshgrid(*(np.arange(side, dtype=np.float32) for side in long.shape[:2]), indexing="ij")
    ends = []
    for keypoint in range(KEYPOINTS):
        point = np.stack([rows, columns], axis=-1)
        for _ in range(_MASK_REFINEMENTS + 1):
            point = _inside(point + _sampled(long, point, [keypoint, KEYPOINTS + keypoint]), long.shape)
        ends.append(point * np.float32(stride))
    distance = poses[:, None, None] - np.stack(ends, axis=-2)
    found: npt.NDArray[np.int64] = np.argmin((distance * distance).sum(axis=(-2, -1)), axis=0)
    return found


POSENET_DECODER = CustomOp("PosenetDecoderOp", _decode, _shapes)

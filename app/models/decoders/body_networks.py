"""Decoders of MoveNet and PoseNet: the 17 points of COCO of one person or several."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.model.graph import Shape

from ...picture.color_planes import Floats
from ...picture.picture import ImageSize
from .decoding import AnchorForm, Decoder, InputRange, ModelFacts
from .found import Finding, SkeletonName
from .graph_ends import is_score
from .region import FrameRegion
from .suppression import is_sound, sigmoid

__all__ = ["HEAT_MAPS", "MOVENET", "MOVENET_MULTIPOSE", "POSENET", "POSES"]

_POINTS = 17
_LEAST_CERTAIN = 0.3  # of a point that counts for a person's score
_LEAST_MEAN = 0.2  # of a person's score, the mean of its points', as in MoveNet's examples
_LEAST_HEAT = 0.1  # the same of both for heat maps, which are low where a point may be in several places
_PEOPLE, _MOST_PEOPLE = 6, 32  # of MoveNet as it is published, and at most
_LEAST_MAPS, _MOST_MAPS = 5, 64
_Places = npt.NDArray[np.int64]
_SKELETONS: dict[int, SkeletonName] = {14: "body-14", 17: "coco"}


@dataclass(frozen=True)
class MoveNetDecoding:
    """Rows of y, x and certainty of 17 points, a row for each person; with several, each has its box and score."""

    why: str
    reads: tuple[int, ...] = (0,)
    input_range: InputRange | None = (0.0, 255.0)
    anchors: AnchorForm | None = None

    def decode(self, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
        """As a Decoding does."""
        values = outputs[0].reshape(-1, 3 * _POINTS) if outputs[0].size == 3 * _POINTS else outputs[0].reshape(-1, 56)
        bodies = [_body(row[: 3 * _POINTS].reshape(-1, 3)[:, [1, 0, 2]], region, row[3 * _POINTS :]) for row in values]
        return tuple(sorted((body for body in bodies if body), key=lambda body: -body.score))


@dataclass(frozen=True)
class PoseNetDecoding:
    """Heat maps of 17 points, and how far from a map's place each is: the most certain place of each point."""

    why: str
    size: ImageSize
    reads: tuple[int, ...]
    is_raw: bool
    input_range: InputRange | None = (-1.0, 1.0)
    anchors: AnchorForm | None = None

    def decode(self, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
        """As a Decoding does."""
        heat, offsets = (values.reshape(values.shape[-3:]) for values in outputs)
        rows, columns, certainty = _peaks(heat, self.is_raw)
        numbers = np.arange(len(rows))
        shift = np.stack([offsets[rows, columns, numbers + _POINTS], offsets[rows, columns, numbers]], axis=1)
        steps = np.array([_step(length, cells) for length, cells in zip(self.size, heat.shape[1::-1], strict=True)])
        with np.errstate(all="ignore"):
            places = (np.stack([columns, rows], axis=1) * steps + shift) / np.array(self.size)
        body = _body(np.concatenate([places, certainty[:, None]], axis=1).astype(np.float32), region)
        return (body,) if body else ()


@dataclass(frozen=True)
class PosesDecoding:
    """Poses that the network itself has chosen: places (y, x, in pixels of the input), their scores, poses' scores."""

    why: str
    size: ImageSize
    reads: tuple[int, ...] = (0, 1, 2, 3)
    input_range: InputRange | None = (-1.0, 1.0)
    anchors: AnchorForm | None = None

    def decode(self, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
        """As a Decoding does."""
        places, certain = outputs[0].reshape(-1, _POINTS, 2), outputs[1].reshape(-1, _POINTS, 1)
        scores, given = outputs[2].reshape(-1), float(outputs[3].reshape(-1)[0])
        most = int(min(max(given, 0.0), len(places))) if given == given else 0
        bodies = [
            _body(np.concatenate([place[:, ::-1] / np.array(self.size, np.float32), sure], axis=1), region)
            for place, sure, score in zip(places[:most], certain, scores, strict=False)
            if score >= _LEAST_MEAN
        ]
        return tuple(sorted((body for body in bodies if body), key=lambda body: -body.score))


@dataclass(frozen=True)
class HeatMapDecoding:
    """A heat map, from 0 to 1, for each point of a person: its highest place, moved towards its higher neighbor."""

    why: str
    skeleton: SkeletonName
    reads: tuple[int, ...] = (0,)
    input_range: InputRange | None = None
    anchors: AnchorForm | None = None

    def decode(self, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
        """As a Decoding does."""
        heat = outputs[0].reshape(outputs[0].shape[-3:])
        rows, columns, certainty = _peaks(heat, False)
        height, width, count = heat.shape
        padded = np.pad(np.where(np.isfinite(heat), heat, 0), ((1, 1), (1, 1), (0, 0)))
        numbers = np.arange(count)
        across = np.sign(padded[rows + 1, columns + 2, numbers] - padded[rows + 1, columns, numbers])
        down = np.sign(padded[rows + 2, columns + 1, numbers] - padded[rows, columns + 1, numbers])
        places = np.stack([(columns + 0.5 + across / 4) / width, (rows + 0.5 + down / 4) / height, certainty], axis=1)
        body = _body(places.astype(np.float32), region, None, self.skeleton, _LEAST_HEAT, _LEAST_HEAT)
        return (body,) if body else ()


def _peaks(heat: Floats, is_raw: bool) -> tuple[_Places, _Places, Floats]:
    """The row and column of each map's highest place, and how high it is, from 0 to 1."""
    flat = np.where(np.isfinite(heat), heat, -100 if is_raw else 0).reshape(-1, heat.shape[2])
    best = flat.argmax(axis=0)
    height = flat[best, np.arange(flat.shape[1])]
    certainty = sigmoid(height) if is_raw else np.asarray(np.clip(height, 0, 1), np.float32)
    return best // heat.shape[1], best % heat.shape[1], certainty


def _step(length: int, cells: int) -> float:
    """How many pixels lie between two places of a map whose first and last are the input's."""
    return (length - 1) / (cells - 1) if cells > 1 else float(length)


def _body(
    points: Floats,
    region: FrameRegion,
    box: Floats | None = None,
    skeleton: SkeletonName = "coco",
    least_certain: float = _LEAST_CERTAIN,
    least_mean: float = _LEAST_MEAN,
) -> Finding | None:
    """A person of points (N, 3) of x, y and certainty; `box` is top, left, bottom, right and score where they are said.

    Without one the box is that around the points that are certain.
    """
    said = box is not None and len(box) == 5
    if not is_sound(points) or (said and box is not None and not is_sound(box)):
        return None
    certainty = np.clip(points[:, 2], 0, 1)
    if said and box is not None:
        top, left, bottom, right, score = (float(value) for value in box)
    else:
        near = points[certainty >= least_certain, :2]
        if not len(near):
            return None
        (left, top), (right, bottom) = near.min(0).tolist(), near.max(0).tolist()
        score = float(certainty.mean())
    if score < least_mean:
        return None
    place = region.box_to_frame((left, top, right, bottom))
    return Finding("person", min(score, 1.0), place, "", region.points_to_frame(points[:, :2]), certainty, skeleton)


def _movenet(facts: ModelFacts) -> MoveNetDecoding | None:
    if facts.shapes not in (((1, 1, _POINTS, 3),), ((1, _POINTS, 3),)):
        return None
    return MoveNetDecoding("17 points of one person with their certainty, as MoveNet's")


def _multipose(facts: ModelFacts) -> MoveNetDecoding | None:
    shape = facts.shapes[0] if len(facts.shapes) == 1 else ()
    if len(shape) != 3 or shape[0] != 1 or shape[2] != 56 or not 1 <= shape[1] <= _MOST_PEOPLE:
        return None
    if shape[1] != _PEOPLE and facts.task != "points" and not facts.is_called("movenet", "multipose"):
        return None
    return MoveNetDecoding(f"17 points and a box of each of {shape[1]} people, as MoveNet's multipose")


def _posenet(facts: ModelFacts) -> PoseNetDecoding | None:
    maps = {shape[3]: place for place, shape in enumerate(facts.shapes) if _is_map(shape)}
    if len(facts.shapes) not in (2, 3, 4) or not {_POINTS, 2 * _POINTS} <= {*maps}:
        return None
    heat, offsets = maps[_POINTS], maps[2 * _POINTS]
    if facts.shapes[heat][:3] != facts.shapes[offsets][:3]:
        return None
    why = "heat maps of 17 points of one person and offsets from their places, as PoseNet's"
    return PoseNetDecoding(why, facts.input_size, (heat, offsets), not is_score(facts.graph, heat))


def _poses(facts: ModelFacts) -> PosesDecoding | None:
    shapes = facts.shapes
    poses = shapes[0][1] if len(shapes) in (4, 5) and len(shapes[0]) == 4 else 0
    if not 1 <= poses <= _MOST_PEOPLE:
        return None
    if shapes[:3] != ((1, poses, _POINTS, 2), (1, poses, _POINTS), (1, poses)) or shapes[3] not in ((), (1,)):
        return None
    return PosesDecoding(
        f"17 points of each of {poses} poses, as Coral's PosenetDecoderOp chooses them", facts.input_size
    )


def _heat_maps(facts: ModelFacts) -> HeatMapDecoding | None:
    shape = facts.shapes[0] if len(facts.shapes) == 1 else ()
    if not _is_map(shape) or not _LEAST_MAPS <= shape[3] <= _MOST_MAPS:
        return None
    if facts.task != "points" and not facts.is_called("hourglass", "heatmap", "heat_map", "keypoint", "cpm", "pose"):
        return None
    by = "its name" if facts.task != "points" else "--task points"
    why = f"heat maps of {shape[3]} points of one person, by {by}"
    return HeatMapDecoding(why, _SKELETONS.get(shape[3], ""))


def _is_map(shape: Shape) -> bool:
    return len(shape) == 4 and shape[0] == 1 and min(shape[1:3]) > 1 and shape[3] > 0


MOVENET = Decoder("movenet", "points", _movenet)
MOVENET_MULTIPOSE = Decoder("movenet-multipose", "points", _multipose)
POSENET = Decoder("posenet", "points", _posenet)
POSES = Decoder("poses", "points", _poses)
HEAT_MAPS = Decoder("heat-maps", "points", _heat_maps)

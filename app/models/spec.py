"""Decides what a model's input and output numbers mean, by options, its metadata and its catalogue entry."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from texelflow.gpu_delegate.base.errors import UnsupportedError, UsageError
from texelflow.gpu_delegate.base.wording import meant
from texelflow.gpu_delegate.model.graph import Hybrid

from .class_names import classes_of_people, find_classes
from .entries import ModelEntry
from .metadata import ModelMetadata

__all__ = [
    "ACTIVATIONS", "FINDING_TASKS", "TASKS", "ModelSpec", "PictureSpec", "SpecOptions", "Task", "decide_spec",
    "input_size", "parse_range", "parse_task",
]  # fmt: skip

# Masks, a picture, the class of the whole picture, boxes around things, points of people.
Task = Literal["segmentation", "picture", "classification", "detection", "points"]
TASKS: tuple[Task, ...] = get_args(Task)
FINDING_TASKS: tuple[Task, ...] = ("classification", "detection", "points")
ACTIVATIONS = ("none", "sigmoid", "softmax")

_SAY_INPUT_RANGE = "what black and white are: give --input-range, mostly 0,1 or -1,1"
_COLORS = (3, 4)  # channels of a picture: RGB, RGBA
_LEAST_RANGE, _MOST_RANGE = 1e-6, 1e6  # from black to white in a picture
_MOST_PICTURE_PIXELS = 1 << 24  # 256 MiB of float32 RGBA


@dataclass(frozen=True)
class ModelSpec:
    """How to feed a segmentation network and how to read its output."""

    input_range: tuple[float, float]  # what black and white are for the network
    activation: str  # what the output still needs: none, sigmoid or softmax
    channel: int  # of the output: the class to show, of several the first
    labels: tuple[str, ...] = ()  # of the first classes; may be fewer than there are, or none
    group: tuple[int, ...] = ()  # all channels whose classes are shown together, where they are several
    adds: bool = False  # whether the mask of a group is the sum of scores, which are a softmax's; else the greatest
    has_own_colors: bool = False  # whether the channels before that one say how a person looks (mattes.py)


@dataclass(frozen=True)
class PictureSpec:
    """The same for a network that puts out a picture."""

    input_range: tuple[float, float]
    output_range: tuple[float, float]  # what black and white, or transparent and opaque, are in the output


@dataclass(frozen=True)
class SpecOptions:
    """The user's options; None where none was given."""

    input_range: tuple[float, float] | None = None
    activation: str | None = None
    channel: int | str | None = None  # a number, or a name of the model's labels, or several with commas
    task: Task | None = None
    output_range: tuple[float, float] | None = None
    assumed_task: Task | None = None  # of an output that may be either
    output: int | str | None = None  # of several, its number or its name
    hybrid: Hybrid = "expanded"  # how ops on floats with weights of bytes are computed


def parse_range(text: str, flag: str = "--input-range") -> tuple[float, float]:
    """The two numbers of `--input-range LO,HI`. Raises UsageError."""
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"{flag} {text}: two numbers with a comma are needed, such as 0,1 or -1,1") from None
    _check_range((low, high), flag)
    return low, high


def parse_task(text: str) -> Task:
    """The task that `--task` names. Raises UsageError."""
    for task in TASKS:
        if text == task:
            return task
    raise UsageError(f"--task {text[:40]}: one of {', '.join(TASKS)} is needed{meant(text, TASKS)}")


def decide_spec(
    entry: ModelEntry | None, metadata: ModelMetadata, options: SpecOptions, output_shape: Sequence[int]
) -> ModelSpec | PictureSpec:
    """The first that is given: by the options, the metadata (for ranges also what quantized tensors can say), the
    catalogue.

    `output_shape` is (B, H, W, C). Raises UnsupportedError for an output that is neither a segmentation nor a picture,
    UsageError for an invalid option or, naming the options that would help, if something needed is unknown.
    """
    _check_options(options)
    input_range = options.input_range or metadata.input_range or (entry.input_range if entry else None)
    if _task(entry, metadata, options, output_shape) == "picture":
        return _picture(input_range, metadata, options, output_shape)
    channels = _channels(output_shape)
    activation = options.activation or metadata.activation or (entry.activation if entry else None)
    group = next((group for group in _channel_choices(entry, metadata, options, channels) if group), None)
    if input_range is None or activation is None or group is None:
        raise _unsaid(
            (input_range, _SAY_INPUT_RANGE),
            (activation, f"what its output still needs: give --activation {'|'.join(ACTIVATIONS)}"),
            (group, f"which class to show: give --channel 0..{channels - 1}"),
        )
    labels, several = metadata.labels[:channels], group if len(group) > 1 else ()
    return ModelSpec(input_range, activation, group[0], labels, several, bool(several) and activation == "softmax")


def input_size(input_shape: Sequence[int]) -> tuple[int, int]:
    """The (width, height) of a network's input (1, H, W, 3). Raises UnsupportedError for any other form."""
    if len(input_shape) != 4 or input_shape[0] != 1 or input_shape[3] != 3:
        raise UnsupportedError(f"the model's input has the shape {list(input_shape)}; a picture is [1, H, W, 3]")
    return input_shape[2], input_shape[1]


def _task(entry: ModelEntry | None, metadata: ModelMetadata, options: SpecOptions, output_shape: Sequence[int]) -> Task:
    """What the output is. Raises UsageError for one that may be either, and for options that exclude each other."""
    of_masks = [
        *(["--activation"] if options.activation is not None else []),
        *(["--channel"] if options.channel is not None else []),
    ]
    of_pictures = ["--output-range"] if options.output_range is not None else []
    if options.task in FINDING_TASKS:
        raise UsageError(f"--task {options.task}: its output is neither a segmentation nor a picture then")
    asked: Task | None = options.task or ("segmentation" if of_masks else "picture" if of_pictures else None)
    wrong = of_masks if asked == "picture" else of_pictures if asked == "segmentation" else []
    if wrong:
        others = "a segmentation" if asked == "picture" else "a picture"
        raise UsageError(f"{wrong[0]} is for models whose output is {others}; leave it out or change --task")
    known: Task | None = "picture" if metadata.is_picture else None
    if entry or metadata.activation or metadata.labels:
        known = known or "segmentation"
    found = asked or known or options.assumed_task
    if found is None and len(output_shape) == 4 and output_shape[3] in _COLORS:
        first = "" if options.input_range or metadata.input_range else "--input-range LO,HI and "
        raise UsageError(
            f"its output {list(output_shape)} may be a picture or the scores of {output_shape[3]} classes: "
            f"give {first}--output-range LO,HI for a picture, or --activation {'|'.join(ACTIVATIONS)} and "
            f"--channel 0..{output_shape[3] - 1} for classes"
        )
    return found or "segmentation"


def _picture(
    input_range: tuple[float, float] | None,
    metadata: ModelMetadata,
    options: SpecOptions,
    output_shape: Sequence[int],
) -> PictureSpec:
    shape = list(output_shape)
    if len(shape) != 4 or shape[0] != 1 or min(shape) < 1 or shape[3] not in _COLORS:
        raise UnsupportedError(
            f"the model's output has the shape {shape}; a picture is [1, H, W, 3] or, with transparency, [1, H, W, 4]"
        )
    if shape[1] * shape[2] > _MOST_PICTURE_PIXELS:
        raise UnsupportedError(
            f"the model's picture has {shape[2]}x{shape[1]} pixels; at most {_MOST_PICTURE_PIXELS >> 20} million are "
            "drawn"
        )
    output_range = options.output_range or metadata.output_range
    if output_range and not _LEAST_RANGE <= output_range[1] - output_range[0] <= _MOST_RANGE:
        low, high = output_range
        raise UsageError(
            f"black is {low:g} and white {high:g} in the model's picture; give another --output-range LO,HI"
        )
    if input_range is None or output_range is None:
        raise _unsaid(
            (input_range, _SAY_INPUT_RANGE),
            (output_range, "what black and white are in its picture: give --output-range, mostly 0,1 or -1,1 or 0,255"),
        )
    return PictureSpec(input_range, output_range)


def _unsaid(*asked: tuple[object, str]) -> UsageError:
    """What is unknown among (value, advice)."""
    missing = (advice for value, advice in asked if value is None)
    return UsageError(f"the model's file does not say {'; nor '.join(missing)}")


def _channels(shape: Sequence[int]) -> int:
    if len(shape) != 4 or shape[0] != 1 or min(shape) < 1:
        raise UnsupportedError(f"the model's output has the shape {list(shape)}; a segmentation is [1, H, W, classes]")
    return shape[3]


def _channel_choices(
    entry: ModelEntry | None, metadata: ModelMetadata, options: SpecOptions, channels: int
) -> Iterator[tuple[int, ...]]:
    """The classes to show, from each of their sources in order of precedence. Two classes: the first is background."""
    labels = metadata.labels[:channels]
    if options.channel is not None:
        yield find_classes(options.channel, labels, channels)
    yield classes_of_people(labels)
    if entry and entry.channel is not None and entry.channel < channels:
        yield (entry.channel,)
    if channels <= 2:
        yield (channels - 1,)


def _check_options(options: SpecOptions) -> None:
    for bounds, flag in ((options.input_range, "--input-range"), (options.output_range, "--output-range")):
        if bounds is not None:
            _check_range(bounds, flag)
    if options.activation is not None and options.activation not in ACTIVATIONS:
        near = meant(options.activation, ACTIVATIONS)
        raise UsageError(f"--activation {options.activation}: one of {', '.join(ACTIVATIONS)} is needed{near}")


def _check_range(bounds: tuple[float, float], flag: str) -> None:
    if not all(map(math.isfinite, bounds)) or bounds[0] >= bounds[1]:
        raise UsageError(f"{flag} {bounds[0]:g},{bounds[1]:g}: the first number must be below the second")

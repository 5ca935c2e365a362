"""Options, a model's metadata and its catalogue entry go in; what its input and output numbers mean comes out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from texelflow.gpu_delegate.errors import UnsupportedError, UsageError
from texelflow.gpu_delegate.wording import meant

from .entries import ModelEntry
from .metadata import ModelMetadata

__all__ = ["ACTIVATIONS", "ModelSpec", "SpecOptions", "decide_spec", "input_size", "parse_range"]

ACTIVATIONS = ("none", "sigmoid", "softmax")
_PERSON = "person"


@dataclass(frozen=True)
class ModelSpec:
    """How to feed a segmentation network and how to read its output."""

    input_range: tuple[float, float]  # what black and white are for the network
    activation: str  # what the output still needs: none, sigmoid or softmax
    channel: int  # of the output: the class to show


@dataclass(frozen=True)
class SpecOptions:
    """The user's options; None where none was given."""

    input_range: tuple[float, float] | None = None
    activation: str | None = None
    channel: int | None = None


def parse_range(text: str) -> tuple[float, float]:
    """The two numbers of `--input-range LO,HI`. Raises UsageError."""
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise UsageError(f"--input-range {text}: two numbers with a comma are needed, such as 0,1 or -1,1") from None
    _check_range((low, high))
    return low, high


def decide_spec(
    entry: ModelEntry | None, metadata: ModelMetadata, options: SpecOptions, output_shape: Sequence[int]
) -> ModelSpec:
    """The first that is given: by the options, the metadata, the catalogue.

    `output_shape` is (B, H, W, C). Raises UnsupportedError for an output that is no segmentation, UsageError for an
    invalid option or, naming the options that would help, if something needed is unknown.
    """
    channels = _channels(output_shape)
    _check_options(options, channels)
    input_range = options.input_range or metadata.input_range or (entry.input_range if entry else None)
    activation = options.activation or metadata.activation or (entry.activation if entry else None)
    channel = next((c for c in _channel_choices(entry, metadata, options, channels) if c is not None), None)
    if input_range is None or activation is None or channel is None:
        missing = [
            *(
                ["what black and white are for it: give --input-range, 0,1 or -1,1 mostly"]
                if input_range is None
                else []
            ),
            *(
                [f"what its output still needs: give --activation {'|'.join(ACTIVATIONS)}"]
                if activation is None
                else []
            ),
            *([f"which class is the person: give --channel 0..{channels - 1}"] if channel is None else []),
        ]
        raise UsageError(f"the model's file does not say {'; nor '.join(missing)}")
    return ModelSpec(input_range, activation, channel)


def input_size(input_shape: Sequence[int]) -> tuple[int, int]:
    """The (width, height) of a network's input (1, H, W, 3). Raises UnsupportedError for any other form."""
    if len(input_shape) != 4 or input_shape[0] != 1 or input_shape[3] != 3:
        raise UnsupportedError(f"the model's input has the shape {list(input_shape)}; a picture is [1, H, W, 3]")
    return input_shape[2], input_shape[1]


def _channels(shape: Sequence[int]) -> int:
    if len(shape) != 4 or shape[0] != 1 or min(shape) < 1:
        raise UnsupportedError(f"the model's output has the shape {list(shape)}; a segmentation is [1, H, W, classes]")
    return shape[3]


def _channel_choices(
    entry: ModelEntry | None, metadata: ModelMetadata, options: SpecOptions, channels: int
) -> tuple[int | None, ...]:
    """The class to show, from each of its sources in order of precedence. Two classes: the first is background."""
    labelled = metadata.labels.index(_PERSON) if _PERSON in metadata.labels[:channels] else None
    known = entry.channel if entry else None
    listed = known if known is not None and known < channels else None
    return options.channel, labelled, listed, channels - 1 if channels <= 2 else None


def _check_options(options: SpecOptions, channels: int) -> None:
    if options.input_range is not None:
        _check_range(options.input_range)
    if options.activation is not None and options.activation not in ACTIVATIONS:
        near = meant(options.activation, ACTIVATIONS)
        raise UsageError(f"--activation {options.activation}: one of {', '.join(ACTIVATIONS)} is needed{near}")
    if options.channel is not None and not 0 <= options.channel < channels:
        raise UsageError(f"--channel {options.channel}: the model's output has the classes 0 to {channels - 1}")


def _check_range(bounds: tuple[float, float]) -> None:
    if not all(map(math.isfinite, bounds)) or bounds[0] >= bounds[1]:
        raise UsageError(f"--input-range {bounds[0]:g},{bounds[1]:g}: the first number must be below the second")

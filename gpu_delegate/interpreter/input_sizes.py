"""The shapes that inputs of a model are to have, which differ from those in its file where they were resized."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import numpy as np

from ..model.graph import Shape
from .call_errors import AllocationError, CallOrderError, CallTypeError, CallValueError
from .model_source import ModelSource

MOST_ELEMENTS = 1 << 38  # of a tensor that anybody asks for


class InputSizes:
    """Of all subgraphs of one model."""

    def __init__(self, source: ModelSource) -> None:
        self._source = source
        self._resized: dict[int, dict[int, Shape]] = {}

    def resize(self, subgraph: int, index: int, size: Iterable[int], strict: bool) -> bool:
        """Have a tensor with another shape, from the next allocation on; whether it is another one.

        Raises CallValueError for what is no shape, a RuntimeError (as TensorFlow Lite) for another tensor than an
        input, and with `strict` for sizes that the file does not leave open.
        """
        shape = shape_asked(size)
        details = self._source.details(subgraph)
        if not 0 <= index < details.tensor_count:
            raise CallOrderError(f"there is no tensor {index}; there are {details.tensor_count}, from 0 on")
        if any(each < 0 for each in shape) or int(np.prod(shape, dtype=object)) > MOST_ELEMENTS:
            raise AllocationError(f"tensor {index} ({details.name(index)}) cannot have the shape {list(shape)}")
        if strict:
            known = details.shape_signature(index) or details.shape(index)
            if len(known) != len(shape) or any(a not in (-1, b) for a, b in zip(known, shape, strict=True)):
                raise CallOrderError(
                    f"tensor {index} ({details.name(index)}) is {list(known)}, of which only sizes of -1 can be other "
                    f"ones with strict=True, not {list(shape)}"
                )
        is_new = shape != self.shape(subgraph, index)
        self.note(subgraph, index, shape)
        return is_new

    def note(self, subgraph: int, index: int, shape: Shape) -> None:
        """That a tensor has been resized."""
        self._resized.setdefault(subgraph, {})[index] = shape

    def resized(self, subgraph: int) -> Mapping[int, Shape]:
        """The inputs whose shapes are not those of the file, with these."""
        details = self._source.details(subgraph)
        asked = self._resized.get(subgraph, {})
        return MappingProxyType({index: shape for index, shape in asked.items() if shape != details.shape(index)})

    def shape(self, subgraph: int, index: int) -> Shape:
        """Of a tensor before anything is allocated: as it was asked for, or in the file."""
        asked = self._resized.get(subgraph, {}).get(index)
        return self._source.details(subgraph).shape(index) if asked is None else asked

    @property
    def all(self) -> Mapping[int, Mapping[int, Shape]]:
        """By subgraph and tensor, all that have been asked for."""
        return self._resized


def shape_asked(size: object) -> Shape:
    """A list or an array of whole numbers as a shape. Raises CallValueError, CallTypeError."""
    told = "a shape is a list of whole numbers, such as [1, 256, 256, 3], not "
    try:
        sizes = np.array(size, np.int32)
    except TypeError:
        raise CallTypeError(f"{told}{size!r}") from None
    except (ValueError, OverflowError):
        raise CallValueError(f"{told}{size!r}") from None
    if sizes.ndim != 1:
        raise CallValueError(f"{told}{size!r}: Shape should be 1D instead of {sizes.ndim}.")
    return tuple(map(int, sizes))

"""The values of states as callers have them: what they hold at first, what is saved, and what can be restored."""

from collections.abc import Collection, Iterable

import numpy as np
import numpy.typing as npt

from ..base.errors import UsageError
from .graph import KeptState

StateValues = dict[str, npt.NDArray[np.generic]]  # by name, in the type and shape of the file


def initial_state(state: KeptState) -> npt.NDArray[np.generic]:
    """What a state holds before the first run: TensorFlow Lite, too, begins with zeros, whatever they mean."""
    return np.zeros(state.own.shape, state.own.dtype) if state.own.data is None else state.own.data


def check_names(names: Iterable[str], states: Collection[str]) -> None:
    """Raise UsageError for a name that there is not."""
    for name in names:
        if name not in states:
            raise UsageError(f"there is no state {name!r}; there are: {', '.join(states) or 'none'}")

"""Says how a kernel's weights were packed, so that those of another body with the same code are packed alike."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..model.packing import Float32Array, joined_floats
from ..plan.body import Body

# Of a blob, in order: a constant of a body, or what one of its nodes gives, and how that, or its weights, is packed
Pieces = Sequence[tuple[int, Callable[[Body, int], Float32Array]]]


@dataclass(frozen=True)
class WeightsRecipe:
    """The pieces of a kernel's weights, in order, and what stands behind them whatever the body's constants."""

    pieces: Pieces  # by the place of each tensor among Body.tensors
    rest: Float32Array  # (N, ...), as the weights

    @staticmethod
    def of(body: Body, pieces: Pieces, rest: Float32Array) -> "WeightsRecipe":
        """Of the body whose kernel has these pieces."""
        places = {tensor: place for place, tensor in enumerate(body.tensors)}
        return WeightsRecipe([(places[tensor], pack) for tensor, pack in pieces], rest)

    def packed(self, body: Body) -> tuple[Float32Array, ...]:
        """The pieces of a body with the same key, and the rest."""
        tensors = body.tensors
        return (*(pack(body, tensors[place]) for place, pack in self.pieces), self.rest)

    def weights(self, body: Body) -> Float32Array:
        """The same, one behind the other."""
        return joined_floats(self.packed(body)).reshape(-1, *self.rest.shape[1:])

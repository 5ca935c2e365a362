"""The interface by which an op writes its arithmetic into a kernel.

Emissions (gpu_delegate/ops) say their own arithmetic alone. Which thread computes which pixels and slices, where values
come from, what is read twice and where declarations stand is decided behind this interface, whose one implementation is
gpu_delegate/kernels/emit.py.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from ..device.tile import Tile
from ..model.graph import Graph, Node, Size2
from ..model.layout import MapShape
from ..model.packing import Float32Array
from .expressions import Slice, Weights
from .indices import Place, Validity
from .product_forms import Products
from .vocabulary import ZEROS, Name, Operand, SourceIndex, Statement, Value

Pack = Callable[[Graph, Node], Float32Array]  # a node's weights as kernels read them


class KernelWriter(Protocol):
    """One kernel while it is written. Lists of values have one for each of the thread's pixels, `rows`."""

    # What is computed ---------------------------------------------------------------------------------------------

    @property
    def graph(self) -> Graph: ...

    @property
    def domain(self) -> MapShape:
        """The map whose pixels are distributed over threads."""
        ...

    @property
    def tile(self) -> Tile:
        """How they are."""
        ...

    @property
    def rows(self) -> range:
        """Numbers of the thread's pixels."""
        ...

    @property
    def shares_folds(self) -> bool:
        """Whether threads share what is emitted, a reduction over pixels: each takes every n-th one."""
        ...

    def shape(self, tensor: int) -> MapShape: ...

    # Statements ---------------------------------------------------------------------------------------------------

    def add(self, statement: Statement) -> None:
        """Append a statement to the open block."""
        ...

    def declare(self, values: Sequence[Operand], prefix: str = "t") -> list[Name]:
        """A new variable for each value."""
        ...

    def once(self, prefix: str, value: Value) -> Name:
        """The variable that has this value: a new one unless an enclosing block has one."""
        ...

    def position(self, prefix: str, value: Value) -> Name:
        """Like once(), for values that depend on the thread, then declared before all loops, or on a tap."""
        ...

    def loop(self, *over: tuple[Name, int]) -> AbstractContextManager[None]:
        """What is emitted inside is repeated for each number, or done once; its declarations stay there."""
        ...

    def when(self, condition: Validity) -> AbstractContextManager[None]:
        """What is emitted inside is done where a condition holds; its declarations stay there."""
        ...

    def window_loop(self, *over: tuple[Name, int]) -> AbstractContextManager[None]:
        """A loop over taps of a window: positions that depend on one are declared in it."""
        ...

    def looped_axes(self, kernel: Size2) -> tuple[bool, bool]:
        """Whether the rows of a window, and its columns, are a loop."""
        ...

    def share_array(self, name: str, texels: int) -> None:
        """Have an array of vec4s in the work-group's memory, which nobody reads any more for what it held before."""
        ...

    # Values -------------------------------------------------------------------------------------------------------

    def value(self, tensor: int, at: Slice) -> Sequence[Value]:
        """Slice `at` of a value for each of the thread's pixels."""
        ...

    def tap(self, tensor: int, at: Slice, row: SourceIndex, column: SourceIndex, outside: Value = ZEROS) -> Name:
        """One texel of an input at source coordinates from axis_at(), `outside` where they are not valid."""
        ...

    def texel_at(self, tensor: int, at: Slice, place: Place) -> Value:
        """Slice `at` of an input at (b, y, x)."""
        ...

    def moved(self, node: Node, row: int, at: Slice) -> Value:
        """Slice `at` of a node that moves data, at the thread's pixel `row`."""
        ...

    def weights(self, node: Node, what: str, pack: Pack) -> Weights:
        """Weights of a node, an array of vec4s (..., 4), by a name among those of the node; they are packed once.

        Code may depend on their shape, not on their values: the same packs those of other nodes with this code.
        """
        ...

    def products(self, node: Node) -> Products:
        """How sums of products with a node's weights are computed."""
        ...

    def masked(self, value: Value, channels: int, at: Slice) -> Value:
        """The value with zeros in the lanes past the last channel."""
        ...

    def lanes_or(self, value: Value, channels: int, at: Slice, other: float) -> Value:
        """The value with another one in the lanes past the last channel."""
        ...

    # Registers: what is kept from one loop over slices to the next -------------------------------------------------

    def held(self, tensor: int, row: int, index: int) -> Name:
        """The register of a held value for one of the thread's pixels and, by index, one of its slices."""
        ...

    def held_slices(self, tensor: int) -> range:
        """Indices of the slices of a held value that this thread computes."""
        ...

    def output_slice(self, index: int) -> Slice:
        """Slice `index` of those that this thread computes."""
        ...

    # Places -------------------------------------------------------------------------------------------------------

    def place(self, shape: MapShape, row: int) -> Place:
        """(b, y, x) of the thread's pixel `row`, in a map that may be smaller: where its size is 1, it is broadcast."""
        ...

    def map_row(self) -> Name:
        """The thread's first row, counted from the top of its map of the batch."""
        ...

    def map_place(self, row: int) -> tuple[Value, int, Value]:
        """(y, rows further down, x) of the thread's pixel `row`, in its map of the batch."""
        ...

    def texel(self, tensor: int, at: Slice, pixel: Operand) -> Operand:
        """Position in memory of slice `at` of a pixel, given by its index in the map."""
        ...

    def target(self, tensor: int) -> str:
        """The name under which the kernel writes an output."""
        ...

    def is_plain(self, tensor: int) -> bool:
        """Whether a tensor of one channel is stored as one float for each pixel."""
        ...

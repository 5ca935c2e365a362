"""The plan of one pixel kernel: the loops over channel slices that compute a group of nodes.

A pixel kernel runs one thread for a small column of output pixels. Inside, a value is either *streamed* (slice s is
computed when something asks for it: a load, an elementwise op, a depthwise window) or *held* (all slices in registers).
A convolution over streamed input accumulates into held output, one input slice at a time; a 1x1 convolution over held
input is streamed again, one output slice at a time. So depthwise -> project -> add -> expand -> activate is two loops,
and no value between them touches memory.

    phase 0   for s in slices(depthwise):  a += project[s] * relu(depthwise(s))
    phase 1   unrolled:                    a += skip; store a
    phase 2   for o in slices(expand):     store hard_swish(bias[o] + expand[o] * a)
"""

import copy
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from types import MappingProxyType

from ..device.device import Device, Tuning
from ..device.limits import Limits
from ..model.graph import Graph, Node
from ..model.layout import TEXEL_BYTES, MapShape, ceil_div, shape_of
from ..ops.nodes import (
    computed_weights,
    groups_of_channels,
    has_kernel,
    has_role,
    is_channel_reduction,
    is_constant_vector,
    is_contraction,
    is_elementwise,
    is_pixelwise_contraction,
    is_scatter,
    memory_inputs,
    multiplies_rows,
    reads_memory,
    reads_window,
    record_of,
)
from .body_keys import BodyKey, BodyKeys
from .bounds import weight_bytes
from .moves import knows_lanes

MOST_INPUTS = 15  # texture units 1 to 15 of the 16 that OpenGL guarantees; the first holds the weights
MOST_TAPS = 1 << 14  # of a window: more would keep one thread busy for too long
MOST_WRITTEN_SLICES = 32  # of a loop that is unrolled so that lanes are known
NOTHING: Mapping[int, Node] = MappingProxyType({})
MOST_NODES = 100  # of a kernel: the emitter recurses through the inputs of a value, some calls for each


class Decline(Exception):  # noqa: N818 - a decision, not an error
    """A group of nodes cannot be one kernel; the text says why."""


@dataclass(frozen=True)
class Accumulate:
    """Add slice s of the input of a convolution, or of a reduction of channels, to all its (held) outputs."""

    node: Node


@dataclass(frozen=True)
class Hold:
    """Keep slice s of a value in registers."""

    tensor: int


@dataclass(frozen=True)
class Store:
    """Write slice s of a value to memory."""

    tensor: int


Root = Accumulate | Hold | Store


def tensor_of(root: Root) -> int:
    """The value that a root produces or writes."""
    return root.node.outputs[0] if isinstance(root, Accumulate) else root.tensor


@dataclass(frozen=True)
class Phase:
    """One loop over channel slices; unrolled where held values are read or written slice by slice."""

    slices: int
    roots: tuple[Root, ...]
    unrolled: bool = False
    evaluates: frozenset[int] = frozenset()
    touches: frozenset[int] = frozenset()  # the values that it evaluates, reads and writes

    def also(self, root: Root) -> "Phase":
        """The same loop with one more root, whose value it computes already."""
        return replace(self, roots=(*self.roots, root), touches=self.touches | {tensor_of(root)})


@dataclass(frozen=True)
class Body:
    """A kernel's nodes, its loops, and the tensors that it reads and writes; Loops has an example."""

    graph: Graph
    nodes: tuple[Node, ...]
    domain: MapShape  # of the pixels that threads run over; its channels are not used
    phases: tuple[Phase, ...]
    held: frozenset[int]
    inputs: tuple[int, ...]  # runtime tensors read, in order of first use
    outputs: tuple[int, ...]  # tensors stored
    split: bool  # output slices may be distributed over the grid's z
    producers: Mapping[int, Node]  # of the tensors that its nodes produce
    through: Mapping[int, Node]  # tensors that it reads as the nodes that make them by moving data say
    maps: tuple[Node, ...]  # the nodes behind tensors that are read through them, each once
    key: BodyKey  # of all bodies that are like it

    @property
    def tensors(self) -> tuple[int, ...]:
        """Of its nodes, in the order of first use: at the same place in bodies with the same key."""
        nodes = (*self.nodes, *self.maps)
        return tuple(dict.fromkeys(tensor for node in nodes for tensor in (*node.inputs, *node.outputs)))


def maps_of(nodes: Sequence[Node], through: Mapping[int, Node]) -> tuple[Node, ...]:
    """The nodes behind tensors that are read through them, each once."""
    waiting, found = [tensor for node in nodes for tensor in node.inputs], dict[int, Node]()
    while waiting:
        tensor = waiting.pop()
        if tensor in through and tensor not in found:
            found[tensor] = through[tensor]
            waiting += found[tensor].inputs
    return tuple(found.values())


def too_many_bindings(
    graph: Graph, nodes: Sequence[Node], inputs: Sequence[int], outputs: int, limits: Limits
) -> str | None:
    """Why a kernel cannot have these tensors, or None: texture units, and SSBOs for outputs and what is large."""
    if outputs > limits.storage_bindings:
        return f"{outputs} outputs, {limits.storage_bindings} are allowed"
    if len(inputs) > MOST_INPUTS:
        return f"{len(inputs)} inputs, {MOST_INPUTS} are allowed"
    large = sum(shape_of(graph.tensors[tensor]).texels > limits.texture_buffer_texels for tensor in inputs)
    large += _has_large_weights(graph, nodes, limits)
    if large + outputs > limits.storage_bindings:
        return f"{large} inputs too large for textures and {outputs} outputs: too many storage buffers"
    return None


def _has_large_weights(graph: Graph, nodes: Sequence[Node], limits: Limits) -> bool:
    """Whether weights fit neither a buffer texture nor a uniform block."""
    vectors = {tensor for node in nodes for tensor in node.inputs if is_constant_vector(graph, tensor)}
    size_bytes = sum(weight_bytes(graph, node) for node in nodes)
    size_bytes += TEXEL_BYTES * sum(shape_of(graph.tensors[tensor]).texels for tensor in vectors)
    return size_bytes > max(limits.texture_buffer_texels * TEXEL_BYTES, limits.uniform_block_bytes)


def thread_slices(slices: int, tuning: Tuning) -> int:
    """Output slices of a lone convolution that one thread computes, if weights are no literals; 0 for all of them."""
    if slices <= tuning.whole_slices:
        return 0
    most = min(tuning.thread_slices, slices)
    least = ceil_div(most, 2) if tuning.even_slices else most
    return min(range(most, least - 1, -1), key=lambda count: ceil_div(slices, count) * count)


class Loops:
    """Loops for nodes in an executable order. Immutable: with_node() and body() return new objects.

    Every method raises Decline where the nodes cannot be one kernel: too many registers, a value needed twice,
    different sizes, too long a source.

    An example: x has 8 channels, two slices; d = depthwise(x), p = conv1x1(d) and a = p + x have as many,
    e = conv1x1(a) and h = hard_swish(e) have 16. Loops(...).body({h}) has these phases:

        slices 2             Accumulate(p)   computes d slice by slice, and adds each slice to all of p
        slices 2, unrolled   Hold(a)         reads p in registers and x in memory
        slices 4             Store(h)        computes e and h slice by slice from a

    p and a are held; d, e and h are streamed; x is the only input, h the only output. body({a, h}) has the same
    phases, and the second one stores a, too.
    """

    def __init__(
        self,
        graph: Graph,
        device: Device,
        nodes: Sequence[Node],
        through: Mapping[int, Node] = NOTHING,
        keys: BodyKeys | None = None,
    ) -> None:
        """`through` has the tensors that are not in memory: what reads them reads through the maps of their nodes.

        Bodies are compared by their keys where they have them from the same `keys`.
        """
        self.graph = graph
        self._keys = keys or BodyKeys(graph)
        self._through = through
        self.device = device
        self._nodes: tuple[Node, ...] = ()
        self._producers: dict[int, Node] = {}
        self._contractions: tuple[Node, ...] = ()
        self._held: dict[int, int] = {}  # values in registers, and how many slices each has
        self._phases: list[Phase] = []
        self._inputs: dict[int, None] = {}
        _check_length(len(nodes))
        self._domain = self._domain_of(nodes)
        for node in nodes:
            self._add(node)

    def with_node(self, node: Node) -> "Loops":
        """The loops of one more node, which comes last."""
        _check_length(len(self._nodes) + 1)
        grown = self._copy()
        grown._domain = grown._domain_of((*self._nodes[:1], node))
        grown._add(node)
        return grown

    def body(self, stored: Container[int]) -> Body:
        """The whole plan; those outputs of the nodes that are in `stored` are written to memory."""
        outputs = tuple(out for node in self._nodes for out in node.outputs if out in stored)
        whole = self._copy()
        for tensor in outputs:
            whole._store(tensor)
        return whole._finish(outputs)

    def _copy(self) -> "Loops":
        other = copy.copy(self)
        other._producers, other._held, other._inputs = dict(self._producers), dict(self._held), dict(self._inputs)
        other._phases = list(self._phases)
        return other

    def _shape(self, tensor: int) -> MapShape:
        return shape_of(self.graph.tensors[tensor])

    def _domain_of(self, nodes: Sequence[Node]) -> MapShape:
        shapes = {}
        for node in nodes:
            shape = self._shape(node.inputs[0] if is_scatter(node) else node.outputs[0])
            shapes[shape.batch, shape.height, shape.width] = shape
        if len(shapes) != 1:
            raise Decline("the ops have outputs of different sizes")
        return next(iter(shapes.values()))

    def _add(self, node: Node) -> None:
        """Plan the loops that a node needs of its own; streamed values need none."""
        self._nodes += (node,)
        self._producers.update(dict.fromkeys(node.outputs, node))
        if not has_kernel(self.graph, node):
            raise Decline(f"{node.op} has no kernel of its own")
        if any(is_scatter(self._producers[i]) for i in node.inputs if i in self._producers):
            raise Decline("it reads what the same kernel stores at other pixels")
        _check_window(self.graph, node)
        _check_rows(self.graph, self._nodes)
        if is_scatter(node):
            self._hold(node.inputs[0])
            self._read_places(node)
        elif is_contraction(node):
            self._contractions += (node,)
            self._contract(node)
        elif is_channel_reduction(self.graph, node):
            self._accumulate(node)
        elif is_elementwise(node):
            self._check_broadcast(node)
            if any(i in self._held and not self._is_held_once(i, node) for i in node.inputs):
                self._hold(node.outputs[0])
        elif any(i in self._producers for i in memory_inputs(node)):
            raise Decline("a window over a value that the same kernel computes")

    def _read_places(self, node: Node) -> None:
        """What it reads in memory besides, wherever."""
        for tensor in computed_weights(node):
            if tensor in self._producers:
                raise Decline("what the same kernel computes says where it stores")
            self._read(tensor, as_map=True)

    def _contract(self, node: Node) -> None:
        source, pointwise = node.inputs[0], is_pixelwise_contraction(self.graph, node)
        for weights in computed_weights(node):
            if weights in self._producers:
                raise Decline("weights that the same kernel computes")
            self._read(weights, as_map=True)
        if source in self._held and pointwise:
            return  # streamed, one output slice at a time
        if not pointwise and source in self._producers:
            raise Decline("a window over a value that the same kernel computes")
        if not pointwise:
            self._read(source, as_map=True)  # a window's input is read as a map even if it is a constant
        self._accumulate(node)

    def _accumulate(self, node: Node) -> None:
        """A loop over the slices of a node's input, each of which adds to all that the node gives."""
        source, out = node.inputs[0], node.outputs[0]
        slices = self._shape(source).slices // groups_of_channels(self.graph, node)
        self._root(slices, Accumulate(node), source)
        self._held[out] = self._shape(out).slices

    def _is_repeated(self, operand: int, node: Node) -> bool:
        """Whether an elementwise node reads the one channel of an operand for all of its own, whichever slice it is."""
        return self._shape(operand).channels == 1 < self._shape(node.outputs[0]).channels

    def _check_broadcast(self, node: Node) -> None:
        """Operands may have the size 1 in any dimension: they are read from memory, at the same place over and over."""
        out = replace(self._domain, channels=self._shape(node.outputs[0]).channels)
        for shape in map(self._shape, node.inputs):
            sizes = vars(shape).values()
            if any(mine not in (1, whole) for mine, whole in zip(sizes, vars(out).values(), strict=True)):
                raise Decline(f"operands of {'x'.join(map(str, sizes))} do not broadcast")

    def _hold(self, tensor: int) -> None:
        if tensor not in self._held:
            if any(tensor in phase.evaluates for phase in self._phases):
                raise Decline("an earlier loop computes slice by slice what is to be held")
            slices = self._shape(tensor).slices
            self._root(slices, Hold(tensor), tensor)
            self._held[tensor] = slices

    def _store(self, tensor: int) -> None:
        """Write a value to memory, in a loop that computes it already if there is one."""
        if is_scatter(self._producers[tensor]):
            self._phases.append(Phase(1, (Store(tensor),), unrolled=True, touches=self._touched({tensor})))
            return
        slices = self._shape(tensor).slices
        for number, phase in enumerate(self._phases):
            # a loop that computes the value already, and not one channel broadcast over more slices
            if phase.slices == slices and (tensor in phase.evaluates or Hold(tensor) in phase.roots):
                self._phases[number] = phase.also(Store(tensor))
                return
        self._root(slices, Store(tensor), tensor)

    def _root(self, slices: int, root: Root, tensor: int) -> None:
        """Put a root into the phase that evaluates its value already, else into a new one at the end."""
        streams, reads_held = self._behind(tensor)
        if isinstance(root, Accumulate) and not reads_held:
            for number, phase in enumerate(self._phases):
                if phase.slices == slices and tensor in phase.evaluates:
                    self._phases[number] = phase.also(root)
                    return
        values = streams if isinstance(root, Accumulate) else {*streams, tensor}
        touches = self._touched(values) | {tensor_of(root)}
        unrolled = (
            reads_held or isinstance(root, Hold) or (isinstance(root, Store) and self._puts_together(streams, slices))
        )
        self._phases.append(Phase(slices, (root,), unrolled, frozenset(streams), touches))

    def _behind(self, tensor: int) -> tuple[set[int], bool]:
        """The streamed values that a value depends on, each once, and whether a held value is read slice by slice."""
        streams, reads_held, waiting, seen = set[int](), False, [tensor], set[int]()
        while waiting:
            value = waiting.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in self._held:
                reads_held = True
            elif (node := self._producers.get(value)) is None:
                self._read(value)
            else:
                streams.add(value)
                if reads_memory(self.graph, node):
                    for tensor in memory_inputs(node):
                        self._read(tensor, as_map=not has_role(node, "movement"))
                elif not is_contraction(node):  # 1x1 over held values: reads all of them at constant indices
                    waiting += (i for i in reversed(node.inputs) if not self._is_held_once(i, node))
        return streams, reads_held

    def _puts_together(self, streams: set[int], slices: int) -> bool:
        """Whether slices should be written out one by one, because then it is known which lanes they are made of.

        A concatenation of 13 and 19 channels takes half the time, one of eight times 5 a fifth.
        """
        nodes = (self._producers[value] for value in streams)
        moves = (node for node in nodes if has_role(node, "movement"))
        return slices <= MOST_WRITTEN_SLICES and any(knows_lanes(self.graph, node) for node in moves)

    def _is_held_once(self, operand: int, node: Node) -> bool:
        """Whether an operand is one register for all slices of an elementwise node."""
        return operand in self._held and self._is_repeated(operand, node)

    def _read(self, tensor: int, as_map: bool = False) -> None:
        """Add a tensor, or what it is made of, to what the kernel reads; constant vectors are among its weights."""
        if tensor in self._through:
            for source in memory_inputs(self._through[tensor]):
                self._read(source)
        elif as_map or not (self.graph.tensors[tensor].is_constant and self._shape(tensor).is_vector):
            self._inputs.setdefault(tensor)

    def _touched(self, values: set[int]) -> frozenset[int]:
        """Values together with their inputs."""
        nodes = [self._producers[value] for value in values if value in self._producers]
        return frozenset(values).union(*(node.inputs for node in nodes))

    def _finish(self, outputs: tuple[int, ...]) -> Body:
        """The whole plan, if the device can have it."""
        maps, inputs = maps_of(self._nodes, self._through), tuple(self._inputs)
        key = self._keys.key(self._nodes, maps, inputs, outputs)
        split = self._keys.once("is split", key, lambda: self._checked(outputs))
        return Body(
            self.graph, self._nodes, self._domain, tuple(self._phases), frozenset(self._held), inputs, outputs, split,
            self._producers, self._through, maps, key,
        )  # fmt: skip

    def _checked(self, outputs: tuple[int, ...]) -> bool:
        """Whether output slices can be split. Raises Decline where the device cannot have the whole plan."""
        self._check_repeats()
        limits, tuning = self.device.limits, self.device.tuning
        live, split = self._most_live_slices(), self._can_split()
        self._check_groups(split)
        if live > tuning.held_slices and not split and len(self._nodes) > 1:  # a single node cannot be split further
            raise Decline(f"{live} slices in registers, {tuning.held_slices} are allowed")
        if split and (times := self._window_repeats()) > tuning.window_repeats:
            raise Decline(f"its window would be computed {times} times")
        if len(outputs) > limits.storage_bindings - 2:
            raise Decline("too many outputs")
        if reason := too_many_bindings(self.graph, self._nodes, tuple(self._inputs), len(outputs), limits):
            raise Decline(reason)
        return split

    def _check_groups(self, split: bool) -> None:
        """Each thread has output slices of one group of channels, and of no other value."""
        if not split and any(groups_of_channels(self.graph, node) > 1 for node in self._contractions):
            raise Decline("groups of channels and other loops")

    def _check_repeats(self) -> None:
        """A value that several loops evaluate must depend on inputs and registers through elementwise ops only."""
        times = Counter(chain.from_iterable(phase.evaluates for phase in self._phases))
        if len(times) == times.total():
            return
        cheap: dict[int, bool] = {}
        for node in self._nodes:
            same = is_elementwise(node) and all(i in self._held or cheap.get(i, True) for i in node.inputs)
            cheap.update(dict.fromkeys(node.outputs, same))
            if not same and times[node.outputs[0]] > 1:
                raise Decline(f"{self.graph.tensors[node.outputs[0]].name} would be computed twice")

    def _most_live_slices(self) -> int:
        """The most held slices that are live during any phase: produced before or in it, read in or after it."""
        made: dict[int, int] = {}
        read: dict[int, int] = {}
        for position, phase in enumerate(self._phases):
            for tensor in map(tensor_of, phase.roots):
                made.setdefault(tensor, position)
            read.update(dict.fromkeys(phase.touches & self._held.keys(), position))
        change = [0] * (len(self._phases) + 1)
        for tensor, slices in self._held.items():
            change[made[tensor]] += slices
            change[read[tensor] + 1] -= slices
        return max(accumulate(change), default=0)

    def _window_repeats(self) -> int:
        """How many threads compute a window for one pixel, each for the output slices of its own.

        A 3x3 window takes as long as the products with four to eight output slices: where ten threads compute it, one
        kernel takes two to three times as long as two.
        """
        windows = any(has_role(node, "window") or _reduces_memory(self.graph, node) for node in self._nodes)
        if not windows or not self._contractions:
            return 1
        slices = self._held[self._contractions[0].outputs[0]]
        tuning = self.device.tuning
        return ceil_div(slices, tuning.window_slices or thread_slices(slices, tuning) or slices)

    def _can_split(self) -> bool:
        """At most one contraction, at the start, then only work on single slices: so slices are independent."""
        if any(is_scatter(node) or is_channel_reduction(self.graph, node) for node in self._nodes):
            return False
        if not self._contractions:
            return len({phase.slices for phase in self._phases}) == 1
        out = self._contractions[0].outputs[0]
        if len(self._contractions) > 1 or out not in self._held:
            return False
        first, *others = self._phases
        return first.roots == (Accumulate(self._contractions[0]),) and all(p.slices == self._held[out] for p in others)


def _reduces_memory(graph: Graph, node: Node) -> bool:
    """Whether it is a reduction over pixels."""
    return has_role(node, "reduction") and reads_memory(graph, node)


def _check_length(nodes: int) -> None:
    if nodes > MOST_NODES:
        raise Decline(f"{nodes} ops, {MOST_NODES} are allowed")


def _check_rows(graph: Graph, nodes: Sequence[Node]) -> None:
    """Where pixels of a thread are rows of one matrix, they lie in a row; windows want them in a column."""
    if any(map(multiplies_rows, nodes)) and any(reads_window(graph, node) or is_scatter(node) for node in nodes):
        raise Decline("windows and products of matrices take their pixels in other orders")


def _check_window(graph: Graph, node: Node) -> None:
    taps = record_of(node).taps(graph, node)
    if taps > MOST_TAPS:
        raise Decline(f"a window of {taps} pixels, {MOST_TAPS} are allowed")

"""The plan of one pixel kernel: a group of nodes goes in, the loops over channel slices that compute it come out.

A pixel kernel runs one thread for a small column of output pixels. Inside, a value is either *streamed* (slice s is
computed when something asks for it: a load, an elementwise op, a depthwise window) or *held* (all slices in registers).
A convolution over streamed input accumulates into held output, one input slice at a time; a 1x1 convolution over held
input is streamed again, one output slice at a time. So depthwise -> project -> add -> expand -> activate is two loops,
and no value between them touches memory.

    phase 0   for s in slices(depthwise):  a += project[s] * relu(depthwise(s))
    phase 1   unrolled:                    a += skip; store a
    phase 2   for o in slices(expand):     store hard_swish(bias[o] + expand[o] * a)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gpu_delegate.device import Device
from gpu_delegate.graph import Graph, Node, Pool2D
from gpu_delegate.layout import MapShape, shape_of
from gpu_delegate.nodes import SCATTERS, WINDOWS, has_weights, is_contraction, is_pointwise_convolution
from gpu_delegate.ops.elementwise import is_elementwise

MOST_INPUTS = 15  # texture units 1 to 15 of the 16 that OpenGL promises; the first holds the weights
MOST_TAPS = 512  # of a window: all of them stand in the shader's text
MOST_NODES = 100  # of a kernel: a value is written by asking for those behind it, each some calls deeper


class Decline(Exception):  # noqa: N818 - a decision, not an error
    """A group of nodes cannot be one kernel; the text says why."""


@dataclass(frozen=True)
class Accumulate:
    """Add slice s of a convolution's input to all its (held) outputs."""

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


@dataclass
class Phase:
    """One loop over channel slices; unrolled where held values are read or written slice by slice."""

    slices: int
    roots: list[Root] = field(default_factory=list)
    unrolled: bool = False
    evaluates: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Body:
    """A kernel's nodes, its loops, and the tensors that it reads and writes."""

    graph: Graph
    nodes: tuple[Node, ...]
    domain: MapShape  # of the pixels that threads run over; channels mean nothing
    phases: tuple[Phase, ...]
    held: frozenset[int]
    inputs: tuple[int, ...]  # runtime tensors read, in order of first use
    outputs: tuple[int, ...]  # tensors stored
    split: bool  # output slices may be shared out over the grid's z

    def producer(self, tensor: int) -> Node | None:
        """The node of this body that makes a tensor, None for one that is read."""
        return next((node for node in self.nodes if tensor in node.outputs), None)


def too_many_bindings(graph: Graph, inputs: Sequence[int], outputs: int, device: Device) -> str | None:
    """Why a kernel cannot have these tensors, or None: texture units, and SSBOs for outputs and large inputs."""
    if outputs > device.max_storage_bindings:
        return f"{outputs} outputs, {device.max_storage_bindings} are allowed"
    if len(inputs) > MOST_INPUTS:
        return f"{len(inputs)} inputs, {MOST_INPUTS} are allowed"
    large = any(shape_of(graph.tensors[tensor]).texels > device.max_texture_texels for tensor in inputs)
    if large and len(inputs) + outputs > device.max_storage_bindings:
        return f"{len(inputs)} inputs, some too large for textures, and {outputs} outputs: too many storage buffers"
    return None


def plan_body(graph: Graph, nodes: Sequence[Node], stored: Iterable[int], device: Device) -> Body:
    """Loops for a group of nodes, in an order in which they can run.

    Raises Decline where the group cannot be one kernel: registers, values needed twice, sizes that differ, length.
    """
    if len(nodes) > MOST_NODES:
        raise Decline(f"{len(nodes)} ops, {MOST_NODES} are allowed")
    planner = _Planner(graph, tuple(nodes), device)
    for node in nodes:
        planner.add(node)
    wanted = set(stored)
    for tensor in (out for node in nodes for out in node.outputs if out in wanted):
        planner.store(tensor)
    return planner.finish()


class _Planner:
    def __init__(self, graph: Graph, nodes: tuple[Node, ...], device: Device) -> None:
        self.graph = graph
        self.nodes = nodes
        self.device = device
        self.producers = {out: node for node in nodes for out in node.outputs}
        self.held: set[int] = set()
        self.phases: list[Phase] = []
        self.inputs: dict[int, None] = {}
        self.outputs: list[int] = []
        self.domain = self._domain()

    def shape(self, tensor: int) -> MapShape:
        return shape_of(self.graph.tensors[tensor])

    def _domain(self) -> MapShape:
        shapes = {}
        for node in self.nodes:
            shape = self.shape(node.inputs[0] if node.op in SCATTERS else node.outputs[0])
            shapes[shape.height, shape.width] = shape
        if len(shapes) != 1:
            raise Decline("the ops have outputs of different sizes")
        return next(iter(shapes.values()))

    def add(self, node: Node) -> None:
        """Plan the loops that a node needs by itself; what is streamed needs none."""
        out = node.outputs[0]
        self._check_window(node)
        if node.op in SCATTERS:
            self._hold(node.inputs[0])
        elif is_contraction(node):
            if node.inputs[0] in self.held and is_pointwise_convolution(self.graph, node):
                return  # streamed, one output slice at a time
            if not is_pointwise_convolution(self.graph, node) and node.inputs[0] in self.producers:
                raise Decline("a window over a value that the same kernel makes")
            if not is_pointwise_convolution(self.graph, node):
                self.inputs.setdefault(node.inputs[0])  # a window's input is read as a map even if it is a constant
            self._root(self.shape(node.inputs[0]).slices, Accumulate(node), node.inputs[0])
            self.held.add(out)
        elif node.op in WINDOWS:
            if node.inputs[0] in self.producers:
                raise Decline("a window over a value that the same kernel makes")
        elif is_elementwise(node):
            self._check_broadcast(node)
            if any(i in self.held for i in node.inputs):
                self._hold(out)
        else:
            raise Decline(f"{node.op} has no kernel of its own")

    def _check_window(self, node: Node) -> None:
        taps = 1
        if isinstance(node.attributes, Pool2D):
            taps = node.attributes.kernel[0] * node.attributes.kernel[1]
        elif has_weights(node):
            _, height, width, _ = self.graph.tensors[node.inputs[1]].shape
            taps = height * width
        if taps > MOST_TAPS:
            raise Decline(f"a window of {taps} pixels, {MOST_TAPS} are allowed")

    def _check_broadcast(self, node: Node) -> None:
        for shape in map(self.shape, node.inputs):
            if not shape.is_vector and (shape.height, shape.width) != (self.domain.height, self.domain.width):
                raise Decline("an operand repeated along rows or columns alone")

    def _hold(self, tensor: int) -> None:
        if tensor not in self.held:
            self._root(self.shape(tensor).slices, Hold(tensor), tensor)
            self.phases[-1].unrolled = True
            self.held.add(tensor)

    def store(self, tensor: int) -> None:
        """Write a value to memory, in a loop that has it at hand if there is one."""
        producer = self.producers[tensor]
        self.outputs.append(tensor)
        if producer.op in SCATTERS:
            self.phases.append(Phase(1, [Store(tensor)], unrolled=True))
            return
        slices = self.shape(tensor).slices
        for phase in self.phases:  # where the value is at hand already, and not one channel repeated over more slices
            if phase.slices == slices and (tensor in phase.evaluates or Hold(tensor) in phase.roots):
                phase.roots.append(Store(tensor))
                return
        self._root(slices, Store(tensor), tensor)

    def _root(self, slices: int, root: Root, tensor: int) -> None:
        """Put a root into the phase that evaluates its value already, else into a new one at the end."""
        streams: set[int] = set()
        reads_held = self._collect(tensor, streams)
        if isinstance(root, Accumulate):
            same = [phase for phase in self.phases if phase.slices == slices]
            shared = [phase for phase in same if tensor in phase.evaluates and not reads_held]
            if shared:
                shared[0].roots.append(root)
                return
        self.phases.append(Phase(slices, [root], reads_held, streams))

    def _collect(self, tensor: int, streams: set[int]) -> bool:
        """Gather the streamed values behind one; true if a held value is read slice by slice."""
        if tensor in self.held:
            return True
        node = self.producers.get(tensor)
        if node is None:
            if not (self.graph.tensors[tensor].is_constant and self.shape(tensor).is_vector):
                self.inputs.setdefault(tensor)
            return False
        streams.add(tensor)
        if is_contraction(node):
            return False  # 1x1 over held values: all of them at constant positions
        if node.op in WINDOWS:
            self.inputs.setdefault(node.inputs[0])
            return False
        flags = [self._collect(i, streams) for i in node.inputs]
        return any(flags)

    def finish(self) -> Body:
        """The whole plan, if the device can have it."""
        for tensor in {t for phase in self.phases for t in phase.evaluates}:
            if sum(tensor in phase.evaluates for phase in self.phases) > 1 and not self._is_cheap(tensor):
                raise Decline(f"{self.graph.tensors[tensor].name} would be computed twice")
        live = max((self._live_slices(number) for number in range(len(self.phases))), default=0)
        split = self._can_split()
        if live > self.device.held_slices and not split and len(self.nodes) > 1:  # a node alone has no other way
            raise Decline(f"{live} slices in registers, {self.device.held_slices} are allowed")
        if len(self.outputs) > self.device.max_storage_bindings - 2:
            raise Decline("too many outputs")
        if reason := too_many_bindings(self.graph, tuple(self.inputs), len(self.outputs), self.device):
            raise Decline(reason)
        return Body(
            self.graph, self.nodes, self.domain, tuple(self.phases), frozenset(self.held),
            tuple(self.inputs), tuple(self.outputs), split,
        )  # fmt: skip

    def _is_cheap(self, tensor: int) -> bool:
        node = self.producers.get(tensor)
        if node is None:
            return True
        return is_elementwise(node) and all(self._is_cheap(i) for i in node.inputs)

    def _live_slices(self, number: int) -> int:
        """Held slices that exist during a phase: made before or in it, read in or after it."""
        made: set[int] = set()
        read: set[int] = set()
        for position, phase in enumerate(self.phases):
            here = {r.node.outputs[0] if isinstance(r, Accumulate) else r.tensor for r in phase.roots}
            if position <= number:
                made |= here & self.held
            if position >= number:
                read |= self._reads(phase) | (here & self.held)
        return sum(self.shape(tensor).slices for tensor in made & read)

    def _reads(self, phase: Phase) -> set[int]:
        values = phase.evaluates | {r.tensor for r in phase.roots if isinstance(r, Store | Hold)}
        nodes = [self.producers[v] for v in values if v in self.producers]
        return values | {i for node in nodes for i in node.inputs}

    def _can_split(self) -> bool:
        """One contraction at most, at the start, and only slice by slice work after it: slices are independent."""
        contractions = [node for node in self.nodes if is_contraction(node)]
        if any(node.op in SCATTERS for node in self.nodes):
            return False
        if not contractions:
            return len({phase.slices for phase in self.phases}) == 1
        if len(contractions) > 1 or contractions[0].outputs[0] not in self.held:
            return False
        first = self.phases[0]
        channels = self.shape(contractions[0].outputs[0]).slices
        return first.roots == [Accumulate(contractions[0])] and all(p.slices == channels for p in self.phases[1:])

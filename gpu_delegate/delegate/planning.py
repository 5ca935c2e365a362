"""Plans what a delegate takes over of a model, without OpenGL."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..base.errors import UnsupportedError
from ..device.device import Device
from ..model.graph import Graph
from ..model.partition import Partition, subgraph
from ..targets.glsl.compiled_graph import CompiledGraph, compile_graph
from ..targets.glsl.compiled_partitions import CompiledPartitions, CompileGraph, compile_partitions
from .delegate_options import GpuDelegateOptions
from .live_constants import ConstantPlace, constant_places
from .model_finder import FoundModel
from .selection import NOTHING_LEFT, DelegationRates, selection


@dataclass(frozen=True)
class DelegatedPartition:
    """What the GPU computes as one operator of TensorFlow Lite."""

    nodes: tuple[int, ...]  # operators by their numbers in the file, ascending
    inputs: tuple[int, ...]  # tensors, as get_input_details()[k]["index"] numbers them
    outputs: tuple[int, ...]
    dispatches: int  # of one run, for the shapes in the file
    macs: int  # multiply-accumulates, likewise
    subgraph: int = 0  # of the file; its operators and tensors have numbers of their own


@dataclass(frozen=True)
class KernelPlan:
    """A partition, and where the values of tensors go that cross its border."""

    computed: frozenset[int]  # its operators that are computed at run time, by their numbers in the file
    part: Graph  # as a graph of its own
    compiled: CompiledGraph  # for the shapes in the file
    share: float  # of the time for compilation
    uploads: tuple[int, ...]  # inputs whose values are needed; of others the shapes are
    downloads: tuple[int, ...]  # outputs that others than partitions read
    kept: tuple[int, ...]  # outputs that partitions alone read
    constants: tuple[ConstantPlace, ...]  # that it reads

    @property
    def outputs(self) -> tuple[int, ...]:
        return (*self.downloads, *self.kept)


@dataclass(frozen=True)
class DelegatedModel:
    """All that is known of a model before TensorFlow Lite says which shapes it has."""

    file: bytes
    found: CompiledPartitions
    kernels: tuple[KernelPlan, ...]  # in the order in which they run

    @property
    def nodes(self) -> tuple[int, ...]:
        """All operators that the delegate takes, ascending."""
        return tuple(sorted(number for partition in self.found.partitions for number in partition.nodes))

    @property
    def partitions(self) -> tuple[DelegatedPartition, ...]:
        return tuple(
            DelegatedPartition(
                partition.nodes, partition.inputs, partition.outputs, len(compiled.kernels),
                sum(kernel.macs for kernel in compiled.kernels),
            )
            for partition, compiled in zip(self.found.partitions, self.found.compiled, strict=True)
        )  # fmt: skip

    @property
    def read_on_cpu(self) -> frozenset[int]:
        """Tensors that operators read which are left to TensorFlow Lite."""
        nodes = self.found.graph.nodes
        return frozenset(tensor for number in self.found.reasons for tensor in nodes[number].inputs)

    @property
    def written_on_cpu(self) -> frozenset[int]:
        """Tensors that they compute."""
        nodes = self.found.graph.nodes
        return frozenset(tensor for number in self.found.reasons for tensor in nodes[number].outputs)

    def kernel_of(self, nodes: tuple[int, ...]) -> KernelPlan | None:
        """That of a group of operators as TensorFlow Lite forms it: None if each of them is a constant.

        Raises UnsupportedError for a group that has not been planned.
        """
        constants = {number for partition in self.found.partitions for number in partition.constants}
        computed = frozenset(nodes) - constants
        if not computed:
            return None
        found = next((plan for plan in self.kernels if plan.computed == computed), None)
        if found is None:
            shown = ", ".join(map(str, nodes[:8])) + (" ..." if len(nodes) > 8 else "")
            raise UnsupportedError(
                f"TensorFlow Lite makes a group of its own of operators {shown}; it does so if it is to preserve all "
                "tensors (experimental_preserve_all_tensors)"
            )
        return found


def plan_model(
    model: FoundModel,
    options: GpuDelegateOptions,
    device: Device,
    rates: DelegationRates,
    compile_part: CompileGraph = compile_graph,
    left: Mapping[int, str] = NOTHING_LEFT,
    is_called: bool = False,
) -> DelegatedModel:
    """Compile the partitions of a model, or of a subgraph that `is_called` by its operators.

    Operators that are `left`, by their positions, stay where they are.
    """
    found = compile_partitions(
        model.graph,
        device,
        options.compiling,
        selection(rates, options.max_delegated_partitions, options.min_nodes_per_partition, left, is_called),
        compile_part,
    )
    graph, left = found.graph, found.reasons
    elsewhere = {tensor for number in left for tensor in graph.nodes[number].inputs} | {*graph.outputs}
    return DelegatedModel(
        model.data,
        found,
        tuple(
            _kernel_plan(model, partition, compiled, len(graph.nodes) - len(left), elsewhere)
            for partition, compiled in zip(found.partitions, found.compiled, strict=True)
        ),
    )


def _kernel_plan(
    model: FoundModel, partition: Partition, compiled: CompiledGraph, taken: int, elsewhere: set[int]
) -> KernelPlan:
    """`taken` operators are in partitions; tensors `elsewhere` are read by others than these."""
    graph = model.graph
    read = {tensor for number in partition.computed for tensor in graph.nodes[number].inputs}
    return KernelPlan(
        frozenset(partition.computed),
        subgraph(graph, partition),
        compiled,
        min(1.0, len(partition.nodes) / taken),
        tuple(tensor for tensor in partition.inputs if tensor in read),
        tuple(tensor for tensor in partition.outputs if tensor in elsewhere),
        tuple(tensor for tensor in partition.outputs if tensor not in elsewhere),
        constant_places(model.data, {*partition.computed, *partition.constants}),
    )

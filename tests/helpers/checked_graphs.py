"""Runs a random graph in every way, and finds the first output that differs from TensorFlow Lite's.

Integers and truth values are equal; floats within TOLERANCE of the tensor's largest magnitude, or of 1. A quantized
graph is judged by the reference kernels: see `rounding_depth`.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np

import texelflow
from tests.generators.random_devices import random_device
from tests.helpers.engine import run
from tests.helpers.native import native_networks
from tests.model_files.model_builder import Array
from tests.quantized.runs import REFERENCE, TfliteRun
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE
from texelflow.gpu_delegate.model.graph import Graph, Node
from texelflow.gpu_delegate.model.quantization import is_quantized
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

TOLERANCE = 2e-4
RUNS = 2  # of each way, on other inputs
WAYS = ("native", "native unfused", "software", "hardware", "unfused", "odd", "delegate")
OPTIMIZED = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
OF_THE_CPU = ("native", "native unfused")
OF_OPENGL = ("software", "hardware", "delegate", "unfused", "odd")
# Ops that round as the reference kernels do, or not at all: behind them alone, outputs are equal.
_EXACT_OPS = """
    ADD SUB MUL CONV_2D DEPTHWISE_CONV_2D TRANSPOSE_CONV FULLY_CONNECTED BATCH_MATMUL AVERAGE_POOL_2D MAX_POOL_2D
    RESHAPE SQUEEZE EXPAND_DIMS SLICE STRIDED_SLICE SPLIT SPLIT_V TRANSPOSE GATHER TILE PAD PADV2 MIRROR_PAD PACK
    UNPACK SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND DEPTH_TO_SPACE SPACE_TO_DEPTH RESIZE_NEAREST_NEIGHBOR CONCATENATION
    RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 MAXIMUM MINIMUM REDUCE_MAX REDUCE_MIN BROADCAST_TO REVERSE_V2 QUANTIZE
    DEQUANTIZE
"""
EXACT_OPS = frozenset(_EXACT_OPS.split())
Runs = Callable[[Sequence[Array]], Sequence[Array]]


class CheckedGraph:
    """The bytes of a model, inputs for it, and what TensorFlow Lite makes of them.

    Inputs in `fed` are, from the second run on, the outputs at these places of the run before.
    """

    def __init__(
        self,
        model: bytes,
        inputs: Sequence[Sequence[Array]],
        fed: Mapping[int, int] = MappingProxyType({}),
        seed: int = 0,
    ) -> None:
        self.model, self.inputs, self.fed, self.seed = model, inputs, fed, seed
        self.graph = read_model(model)
        reference, self._kernels = _reference(model, any(map(is_quantized, self.graph.tensors.values())))
        self.wanted = list(self._in_turn(reference))
        self.depth = rounding_depth(self.graph)

    def difference(self, way: str, context: Context | None = None) -> str:
        """What is wrong, or nothing. Raises UnsupportedError for what a way does not compute."""
        for ours, theirs in zip(self._outputs(way, context), self.wanted, strict=True):
            for place, (found, right) in enumerate(zip(ours, theirs, strict=True)):
                text = self._apart(self.graph.outputs[place], np.asarray(found), right)
                if text:
                    return f"{way}, output {place}: {text}"
        return ""

    def _apart(self, tensor: int, found: Array, right: Array) -> str:
        if (found.shape, found.dtype) != (right.shape, right.dtype):
            return f"{found.dtype}{list(found.shape)}, not {right.dtype}{list(right.shape)}"
        if not found.size:
            return ""
        apart = float(np.abs(np.subtract(found, right, dtype=np.float64)).max())
        if is_quantized(self.graph.tensors[tensor]):
            steps = self.depth.get(tensor, 0)
            return f"{apart:g} steps apart, {steps} allowed" if apart > steps else ""
        if right.dtype != np.float32:
            return f"{apart:g} apart" if apart else ""
        most = max(TOLERANCE, self.depth.get(tensor, 0) / 128) * max(1.0, float(np.abs(right).max()))
        return "" if apart <= most else f"{apart:.3g} apart, {most:.3g} allowed"

    def _in_turn(self, run: Runs) -> Iterator[Sequence[Array]]:
        """What each run gives; its outputs may be inputs of the next."""
        before: Sequence[Array] = ()
        for values in self.inputs:
            fed = {place: before[output] for place, output in self.fed.items()} if before else {}
            before = [np.array(found) for found in run([fed.get(place, own) for place, own in enumerate(values)])]
            yield before

    def _outputs(self, way: str, context: Context | None) -> Iterator[Sequence[Array]]:
        if way == "delegate":
            with texelflow.GpuDelegate(
                model=self.model, min_nodes_per_partition=1, strict=True, quiet=True
            ) as delegate:
                through = TfliteRun(self.model, self._kernels, delegates=[delegate])
                yield from list(self._in_turn(through))
                del through
        elif way in OF_THE_CPU:
            network = native_networks({0: self.graph}, fuse=way == "native")[0]
            yield from self._in_turn(network.run)
        else:
            assert context is not None, "for OpenGL"
            device = {"hardware": HARDWARE, "odd": random_device(SOFTWARE, np.random.default_rng(self.seed))}
            compiled = compile_graph(self.graph, device.get(way, SOFTWARE), CompileOptions(fuse=way != "unfused"))
            with Program(context, compiled) as program:
                yield from self._in_turn(partial(run, program))


def _reference(model: bytes, quantized: bool) -> tuple[TfliteRun, str]:
    """Of bytes the reference kernels, except where these lack an op; of floats those that are built for speed.

    Neither are XNNPACK's. The reference kernel of LOCAL_RESPONSE_NORMALIZATION differs from all others.
    """
    if quantized:
        with contextlib.suppress(ValueError):
            return TfliteRun(model), REFERENCE
    return TfliteRun(model, OPTIMIZED), OPTIMIZED


def rounding_depth(graph: Graph) -> Mapping[int, int]:
    """How many ops on bytes there are on the longest way to each tensor that may round unlike the reference kernels.

    Each is within one step on equal inputs: bytes may be so many steps apart, none behind EXACT_OPS alone, and floats
    made of them so many parts of 128 of their largest magnitude.
    """
    depth: dict[int, int] = {}
    for node in graph.nodes:
        before = max((depth.get(tensor, 0) for tensor in node.inputs), default=0)
        depth |= dict.fromkeys(node.outputs, before + (not _is_exact(graph, node)))
    return MappingProxyType(depth)


def _is_exact(graph: Graph, node: Node) -> bool:
    tensors = (graph.tensors[i] for i in (*node.inputs, *node.outputs) if i >= 0)
    return node.op in EXACT_OPS or not any(map(is_quantized, tensors))


def ways_of(seed: int) -> list[str]:
    """What a graph of this seed is computed by: this CPU's code, and of every fourth OpenGL or the delegate, too."""
    return all_ways(seed)[: 2 if seed % 4 == 0 else 1]


def all_ways(seed: int) -> list[str]:
    """This CPU's code and OpenGL, each in one of its ways."""
    return [OF_THE_CPU[seed % 2], OF_OPENGL[seed // 4 % len(OF_OPENGL)]]


def first_difference(checked: CheckedGraph, ways: Sequence[str], context: Context | None) -> tuple[str, bool]:
    """What is wrong, and whether an op was refused: then the delegate computes the graph beside TensorFlow Lite."""
    refused = False
    for way in ways:
        try:
            text = checked.difference(way, context)
        except UnsupportedError:
            refused = True
            continue
        if text:
            return text, refused
    return (checked.difference("delegate") if refused and "delegate" not in ways else ""), refused

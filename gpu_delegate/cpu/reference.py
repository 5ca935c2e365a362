"""Runs a graph in TensorFlow Lite on the CPU, as the reference and the fallback.

TensorFlow Lite does not validate files, so it never gets an untrusted one in this process: it gets a file that is
written from the graph as read. A graph with opaque nodes or quantized tensors goes to a process of its own, and so does
the file itself where the graph does not hold all that it says.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from ..base.errors import UsageError
from ..model.graph import Graph
from ..model.quantization import has_quantized
from ..programs.model_sharing import ModelSharing
from ..reading.writer import write_model, written_indices
from ..targets.llvm.machine import usable_cores
from .array_pipe import AnyArray
from .child_interpreter import ChildInterpreter
from .delegation import DelegateMaker, Delegation
from .footprint import check_footprint
from .interpreter import AnyInterpreter, InterpreterOptions, LocalInterpreter
from .interpreter_module import load_interpreter_module
from .shared_interpreter import shared_interpreter

__all__ = ["Reference", "load_interpreter_module"]

Kernels = Literal["usual", "optimized", "reference"]

MOST_THREADS = 4  # more do not help networks of this size
SPARED_CPUS = 1  # its threads busy-wait for each other: if one of them gets no CPU, 3 ms become 500


class Reference:
    """One model in TensorFlow Lite's interpreter on the CPU. Not for use from several threads at once."""

    def __init__(
        self,
        graph: Graph,
        threads: int | None = None,
        keep_all_tensors: bool = False,
        delegate: DelegateMaker | None = None,
        weights_cache: ModelSharing | None = None,
        judges: bool = False,
        quick: bool = False,
        kernels: Kernels = "usual",
    ) -> None:
        """Load a graph as the reader created it, or after rewriting.py's passes.

        With keep_all_tensors no delegate hides the inner tensors and tensor() returns each of them; that is slower.
        It `judges` others then, or if that is asked for: quantized models run in TensorFlow Lite's reference kernels,
        of which its others differ by some steps; hybrid ones of which the same is asked, in those of ai-edge-litert, if
        that is there. Others of these, and with `quick` all that do not judge, run in the runtime that takes the least
        time.
        `kernels` but the usual ones are TensorFlow Lite's own: "optimized" leaves XNNPACK out, "reference" is slow.
        `delegate` has it run on the GPU as far as that can, hybrid ops as the graph says; `delegation` tells how far. A
        graph that goes to a process of its own has its OpenGL context there, and shares no weights. With
        `weights_cache`, XNNPACK's packed weights are those of other instances; `unshared` says why they are not.
        Raises UnsupportedError for a model that needs too much memory or time, ModelError where TensorFlow Lite refuses
        it or does not survive it, DeviceError where there is no TensorFlow Lite, UsageError for what the cache refuses.
        """
        check_footprint(graph, keep_all_tensors)
        delegate = None if delegate is None else delegate.computing(graph.hybrid)
        judges = judges or keep_all_tensors
        model = graph.original or write_model(graph, every_output=keep_all_tensors)
        default = max(1, min(MOST_THREADS, usable_cores() - SPARED_CPUS))
        self.threads = threads or default
        options = InterpreterOptions(
            self.threads,
            len(graph.outputs),
            keep_all_tensors,
            bool(graph.original),
            len(graph.nodes),
            kernels == "reference" or (judges and has_quantized(graph)),
            kernels == "usual" and not judges and (quick or (delegate.quick if delegate else has_quantized(graph))),
            judges and graph.hybrid == "reference",
            kernels == "optimized",
            None if delegate is None else delegate.plain_arguments,
        )
        self._interpreter: AnyInterpreter
        self._cache: ModelSharing | None = None
        self.unshared = ""
        self.process_id: int | None = None  # of the process that runs it, if that is another one
        if is_apart(graph):
            self._interpreter = child = ChildInterpreter(model, options, delegate)
            self.process_id = child.process_id
        elif weights_cache and kernels == "usual" and delegate is None and not keep_all_tensors:
            self._interpreter, self.unshared = shared_interpreter(graph, model, options, weights_cache)
            self._cache = weights_cache
        else:
            made = None if delegate is None else delegate.make(delegate.arguments)
            self._interpreter = LocalInterpreter(model, options, made)
        self._kept: dict[int, int] = {}
        if keep_all_tensors:
            self._kept = {i: i for i in graph.tensors} if graph.original else written_indices(graph)
        signature = self._interpreter.signature
        self.input_shapes, self.input_dtypes = signature.input_shapes, signature.input_dtypes
        self.runtime = signature.runtime  # the package that runs it, with its version
        self.output_shapes, self.output_dtypes = signature.output_shapes, signature.output_dtypes

    @property
    def delegation(self) -> Delegation | None:
        """What runs on the GPU; None where no delegate was asked for."""
        return self._interpreter.delegation

    @property
    def invoke_ms(self) -> float:
        """What TensorFlow Lite took for the last run, without copying inputs and outputs."""
        return self._interpreter.invoke_ms

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of the first input."""
        return self.input_shapes[0]

    def run(self, inputs: Sequence[AnyArray] | AnyArray) -> tuple[AnyArray, ...]:
        """Output tensors, as copies, for one input tensor or one per input.

        Raises UsageError for another shape or type, and before the cache of weights is finalized, ModelError where
        TensorFlow Lite fails.
        """
        if self._cache:
            self._cache.check_run()
        arrays = (inputs,) if isinstance(inputs, np.ndarray) else tuple(inputs)
        shapes = tuple(array.shape for array in arrays)
        if shapes != self.input_shapes:
            raise UsageError(f"the model takes inputs of shapes {self.input_shapes}, not {shapes}")
        for array, dtype in zip(arrays, self.input_dtypes, strict=True):
            if not np.can_cast(array.dtype, dtype, "same_kind"):
                raise UsageError(f"the model takes inputs of the types {self.input_dtypes}, not {array.dtype}")
        return self._interpreter.run(arrays)

    def tensor(self, index: int) -> AnyArray:
        """A copy of any tensor after run(), by its index in the graph; needs keep_all_tensors."""
        if not self._kept:
            raise UsageError("inner tensors are kept only by Reference(..., keep_all_tensors=True)")
        return self._interpreter.tensor(self._kept[index])

    def close(self) -> None:
        """Free a process, and what is in OpenGL, which else go with this object; it cannot run any more then."""
        self._interpreter.close()


def is_apart(graph: Graph) -> bool:
    """Whether a graph runs in a process of its own, whose complaints nobody sees.

    Scales and zero points that make no sense end TensorFlow Lite's process: each of its kernels has rules of its own.
    """
    return bool(graph.original or graph.opaque) or has_quantized(graph)

"""A graph and its inputs go in, its outputs come out: TensorFlow Lite on the CPU, fallback and reference.

TensorFlow Lite does not validate files, so it never gets an untrusted one: it gets a file that is written from the
graph as read.
"""

import contextlib
import importlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import DeviceError, ModelError, UsageError
from .footprint import check_footprint
from .graph import Graph
from .reader import printable_name
from .writer import write_model, written_indices

AnyArray = npt.NDArray[Any]

MOST_THREADS = 4  # more do not help networks of this size
SPARED_CPUS = 1  # its threads busy-wait for each other: if one of them gets no CPU, 3 ms become 500


def load_interpreter_module() -> Any:
    """The module with TensorFlow Lite's Interpreter: tflite-runtime's, else ai-edge-litert's. Raises DeviceError."""
    for name in ("tflite_runtime.interpreter", "ai_edge_litert.interpreter"):
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    raise DeviceError("TensorFlow Lite is not installed; `pip install ai-edge-litert` adds the CPU path")


class Reference:
    """One model in TensorFlow Lite's interpreter on the CPU. Not for use from several threads at once."""

    def __init__(self, graph: Graph, threads: int | None = None, keep_all_tensors: bool = False) -> None:
        """Load a graph as the reader created it, before any pass.

        With keep_all_tensors no delegate hides the inner tensors and tensor() returns each of them; that is slower.
        Raises UnsupportedError for a model that needs too much memory or time, ModelError where TensorFlow Lite refuses
        it, DeviceError where there is no TensorFlow Lite.
        """
        check_footprint(graph, keep_all_tensors)
        module = load_interpreter_module()
        options: dict[str, Any] = {"num_threads": threads or max(1, min(MOST_THREADS, _usable_cpus() - SPARED_CPUS))}
        if keep_all_tensors:
            options["experimental_op_resolver_type"] = module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        model = write_model(graph, every_output=keep_all_tensors)
        with _refusals_in_one_line():
            self._interpreter = module.Interpreter(model_content=model, **options)
            self._interpreter.allocate_tensors()
            inputs = self._interpreter.get_input_details()
            outputs = self._interpreter.get_output_details()[: len(graph.outputs)]
        self._kept = written_indices(graph) if keep_all_tensors else {}
        self.input_shapes = tuple(tuple(int(size) for size in detail["shape"]) for detail in inputs)
        self.output_shapes = tuple(tuple(int(size) for size in detail["shape"]) for detail in outputs)
        # Views of the interpreter's memory are created for each use, because invoke() refuses to run while one exists.
        self._inputs = tuple((detail["index"], self._interpreter.tensor(detail["index"])) for detail in inputs)
        self._outputs = tuple(self._interpreter.tensor(detail["index"]) for detail in outputs)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of the first input."""
        return self.input_shapes[0]

    def run(self, inputs: Sequence[AnyArray] | AnyArray) -> tuple[AnyArray, ...]:
        """Output tensors, as copies, for one input tensor or one per input. Raises UsageError for another shape."""
        arrays = (inputs,) if isinstance(inputs, np.ndarray) else tuple(inputs)
        shapes = tuple(array.shape for array in arrays)
        if shapes != self.input_shapes:
            raise UsageError(f"the model takes inputs of shapes {self.input_shapes}, not {shapes}")
        for (index, view), array in zip(self._inputs, arrays, strict=True):
            if array.ndim:
                np.copyto(view(), array)
            else:  # for a scalar the interpreter returns no view
                self._interpreter.set_tensor(index, array.astype(view().dtype))
        with _refusals_in_one_line():
            self._interpreter.invoke()
        return tuple(view().copy() for view in self._outputs)

    def tensor(self, index: int) -> AnyArray:
        """A copy of any tensor after run(), by its index in the graph; needs keep_all_tensors."""
        if not self._kept:
            raise UsageError("inner tensors are kept only by Reference(..., keep_all_tensors=True)")
        value: AnyArray = self._interpreter.get_tensor(self._kept[index])
        return value


@contextlib.contextmanager
def _refusals_in_one_line() -> Iterator[None]:
    """TensorFlow Lite's errors as a ModelError."""
    try:
        yield
    except (ValueError, RuntimeError) as error:
        reason = printable_name(" ".join(str(error).split()), 200)
        raise ModelError(f"TensorFlow Lite cannot run this model on the CPU: {reason}") from error


def _usable_cpus() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1

"""How far each way to compute hybrid ops, floats with weights of bytes, is from TensorFlow Lite's own kernels."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.cpu.compare import ComparedProgram, compare, errors, magnitude_of
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.graph import Graph, Hybrid
from texelflow.gpu_delegate.model.quantization import with_real_weights

from ...console import Console

Loads = Callable[[bool], AbstractContextManager[ComparedProgram]]  # fused or not; may refuse a model
_Inputs = Sequence[npt.NDArray[Any]]
_ROUNDING = 1e-5  # of a tensor's magnitude: what is further apart was rounded to another step, or not at all


@dataclass(frozen=True)
class HybridError:
    """The largest errors of one way, in parts of the magnitude of TensorFlow Lite's tensor."""

    kernel: float  # of any tensor, where each kernel gets TensorFlow Lite's own inputs
    output: float  # of what the whole model gives out
    apart: float  # the share of outputs that are further off than float32 rounds


def hybrid_errors(
    graph: Graph, samples: Sequence[_Inputs], loads_of: Callable[[Graph], Loads], fuse: bool
) -> Mapping[Hybrid, HybridError]:
    """Of each way, over all samples; nothing of a model without hybrid ops. Raises as the programs and Reference do."""
    plain = replace(graph, hybrid="expanded")
    if with_real_weights(plain) is plain:
        return {}
    ways: tuple[Hybrid, ...] = get_args(Hybrid)
    return {way: _error(replace(graph, hybrid=way), samples, loads_of, fuse) for way in ways}


def show_hybrid(found: Mapping[Hybrid, HybridError], console: Console) -> None:
    """The same for a person; nothing where there is nothing."""
    rows = [(way, f"{each.kernel:.1e}", f"{each.output:.1e}", f"{each.apart:.2%}") for way, each in found.items()]
    if rows:
        title = "Hybrid ops: largest errors, of the magnitude of what TensorFlow Lite's own hybrid kernels give"
        console.table(title, ("--hybrid", "in a kernel", "in the outputs", "outputs beyond rounding"), rows)


def _error(graph: Graph, samples: Sequence[_Inputs], loads_of: Callable[[Graph], Loads], fuse: bool) -> HybridError:
    reference = Reference(replace(graph, hybrid="reference"), keep_all_tensors=True)
    kernel, output, apart = 0.0, 0.0, list[float]()
    with loads_of(graph)(fuse) as program:
        for inputs in samples:
            each = compare(program, reference, inputs)
            kernel = max(kernel, *(difference.relative_error for difference in each))
            for tensor, values in zip(graph.inputs, inputs, strict=True):
                program.write(tensor, values)
            program.run()
            for tensor in graph.outputs:
                wanted = np.asarray(reference.tensor(tensor), np.float32)
                off = errors(np.asarray(program.read(tensor), np.float32), wanted) / (magnitude_of(wanted) or 1.0)
                output = max(output, float(off.max(initial=0)))
                apart.append(float(np.mean(off > _ROUNDING)) if off.size else 0.0)
    return HybridError(kernel, output, float(np.mean(apart)))

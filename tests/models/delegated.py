"""Measures a model through TensorFlow Lite's interpreter with the delegate and without it.

The model goes through TensorFlow Lite's interpreter three times: without the delegate, with the partitions that pay,
and with all that the GPU can take. Where TensorFlow Lite lacks an op of MediaPipe's, the graph as we write it is what
the delegate is compared with.
"""

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import texelflow
from tests.helpers.engine import Floats
from tests.models.measure import (
    Target,
    input_range,
    inputs_for,
    interpreted,
    own_kernels,
    rounds_ms,
    worst_error,
)
from texelflow.gpu_delegate.base.errors import TexelflowError
from texelflow.gpu_delegate.cpu.reference import load_interpreter_module
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.reading.reader import load_model

DELEGATE_COLUMNS = (
    *("model", "operators", "on the GPU", "partitions", "error", "to own kernels"),
    *("all: on the GPU", "partitions", "error", "to own kernels", "CPU's own"),
    *("CPU ms", "delegate ms", "all ms", "left to the CPU"),
)
MOST_REASONS = 3  # of a model, in the table
ERRORS = ("error", "own_error")
MOST_ERROR = 1e-3  # of an output's range or magnitude, against one of TensorFlow Lite's two sets of kernels


def measure_delegated(target: Target, round_s: float) -> dict[str, Any]:
    """All figures of one model; `reason` is empty if it runs through the interpreter with the delegate."""
    figures: dict[str, Any] = {"name": target.name, "reason": "", "load": os.getloadavg()[0]}
    try:
        graph = load_model(target.path)
        cpu, shapes = interpreted(target.path, graph)
        ways = [_Delegated(target, least) for least in (None, 1)]
    except (ValueError, RuntimeError, TexelflowError) as error:
        return figures | {"reason": " ".join(str(error).split())[:200]}
    inputs = inputs_for(shapes, input_range(target))
    wanted, plain = [cpu(given) for given in inputs], own_kernels(graph, inputs)
    for name, way in zip(("", "all_"), ways, strict=True):
        found = [way.run(given) for given in inputs]
        figures |= {f"{name}error": worst_error(found, wanted), f"{name}own_error": worst_error(found, plain)}
        figures |= {f"{name}nodes": way.nodes, f"{name}partitions": len(way.delegate.partitions)}
    times_ms = rounds_ms(round_s, *(partial(run, inputs[0]) for run in (cpu, *(way.run for way in ways))))
    return figures | {
        "operators": len(graph.nodes),
        "cpu_error": worst_error(plain, wanted),
        "ms": times_ms,
        "left": _left(graph, ways[1].delegate.reasons),
    }


def is_delegated_right(target: Target, figures: Mapping[str, Any]) -> bool:
    """Whether both ways give the outputs of XNNPACK or of TensorFlow Lite's own kernels; or no runtime has an op."""
    if figures["reason"]:
        return any(op in figures["reason"] for op in target.left)
    return all(min(figures[f"{way}error"], figures[f"{way}own_error"]) <= MOST_ERROR for way in ("", "all_"))


def delegate_row(figures: Mapping[str, Any]) -> tuple[object, ...]:
    """Of the table."""
    if figures["reason"]:
        return (figures["name"], *("-",) * (len(DELEGATE_COLUMNS) - 2), figures["reason"])
    ways = [
        (*(figures[way + key] for key in ("nodes", "partitions")), *(f"{figures[way + key]:.1e}" for key in ERRORS))
        for way in ("", "all_")
    ]
    left = "; ".join(f"{what} ({count})" for what, count in figures["left"].items())
    times = (f"{ms:.2f}" for ms in figures["ms"])
    return figures["name"], figures["operators"], *ways[0], *ways[1], f"{figures['cpu_error']:.1e}", *times, left or "-"


class _Delegated:
    """An interpreter of the model's file with the delegate."""

    def __init__(self, target: Target, least_nodes: int | None) -> None:
        self.delegate = texelflow.GpuDelegate(min_nodes_per_partition=least_nodes, strict=True, quiet=True)
        self._interpreter = load_interpreter_module().Interpreter(
            str(target.path), experimental_delegates=[self.delegate], num_threads=len(os.sched_getaffinity(0))
        )
        self._interpreter.allocate_tensors()

    @property
    def nodes(self) -> int:
        return sum(len(partition.nodes) for partition in self.delegate.partitions)

    def run(self, given: Sequence[Floats]) -> list[Floats]:
        interpreter = self._interpreter
        for source, values in zip(interpreter.get_input_details(), given, strict=True):
            interpreter.set_tensor(source["index"], values.astype(source["dtype"]))
        interpreter.invoke()
        results = [interpreter.get_tensor(result["index"]) for result in interpreter.get_output_details()]
        return [np.asarray(result, np.float32) for result in results]


def _left(graph: Graph, reasons: Mapping[int, str]) -> dict[str, int]:
    """The most frequent ops that stay on the CPU with their reasons."""
    general = {number: re.sub(r"\btensor \d+", "a tensor", reason) for number, reason in reasons.items()}
    counts = Counter(f"{graph.nodes[number].op}: {reason}"[:120] for number, reason in general.items())
    return dict(counts.most_common(MOST_REASONS))

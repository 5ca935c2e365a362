"""Counts the work that the threads of a kernel repeat: values that several of them compute or read.

A work-group computes the vectors in front of its kernel by itself, and threads that have but some output slices each
compute what these are summed up from. Neither is in an op's own multiply-accumulates, but both are executed.
"""

import math
from dataclasses import dataclass

from ..device.tile import Tile
from ..model.layout import Storage, Storages, shape_of
from ..ops.nodes import record_of
from .body import Accumulate, Body
from .vector_work import VectorWork


@dataclass(frozen=True)
class Repetition:
    """Work beyond what one thread or work-group of each value's would do."""

    macs: int = 0
    read_bytes: int = 0


def repetition_of(body: Body, tile: Tile, prologue: VectorWork, storages: Storages, weights: Storage) -> Repetition:
    """That of a kernel: by its work-groups in front of it, and by threads with different slices in it.

    Weights stay float32 where maps are halves, but for arithmetic in halves.
    """
    slices = shape_of(body.graph.tensors[body.outputs[0]]).slices
    groups = math.prod(tile.grid(body.domain, slices))
    once = sum(record_of(node).macs(prologue.graph, node) for node in prologue.nodes)
    in_front = max(0, groups * prologue.macs - once)
    read_bytes = (groups - 1) * prologue.read_bytes(storages, weights)
    return Repetition(in_front + _streamed_macs(body, tile.blocks(slices)), read_bytes)


def _streamed_macs(body: Body, blocks: int) -> int:
    """Of what is computed slice by slice while others add it up: each block of slices does, and each loop."""
    times = dict.fromkeys(body.producers, 0)
    for phase in body.phases:
        summed = [root.node.outputs[0] for root in phase.roots if isinstance(root, Accumulate)]
        for value in (phase.evaluates | {*summed}) & times.keys():
            times[value] += blocks if summed and value not in summed else 1
    macs = ((record_of(node).macs(body.graph, node), times[out]) for out, node in body.producers.items())
    return sum(count * (repeated - 1) for count, repeated in macs if repeated > 1)

"""Measures the best work-group for each kind of convolution, over sizes of maps.

The domain and the question are those of Table 2 of Lee et al., "On-Device Neural Net Inference with Mobile GPUs" (arXiv
1907.01989): convolutions of 1x1 and 3x3 and depthwise ones, on square maps, by stride; sides of work-groups of 2, 4, 8.
Their third side is here that of threads that share the terms of a sum; 1 where each has a sum of its own.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from types import MappingProxyType

import numpy as np

from texelflow.gpu_delegate.device.choices import Choice, Choices
from texelflow.gpu_delegate.device.device import Device
from texelflow.gpu_delegate.model.graph import Conv2D, DepthwiseConv2D, Graph, Node, Padding, Tensor
from texelflow.gpu_delegate.model.layout import ceil_div
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.targets.glsl.glsl_kernel import lower_to_glsl
from texelflow.gpu_delegate.tuning.halving import Budget
from texelflow.gpu_delegate.tuning.isolated import isolated
from texelflow.gpu_delegate.tuning.tuner import TimesKernels

from .adreno_groups import GroupSides

KINDS = ("1x1", "3x3", "depthwise")
SIDES = (8, 16, 32, 64, 128)  # of the input, in pixels
STRIDES = (1, 2, 3)
_SIDES = (2, 4, 8)  # of a work-group, in threads
GROUPS: tuple[GroupSides, ...] = tuple(product(_SIDES, _SIDES, (1, *_SIDES)))

_CHANNELS = 32  # in and out: eight slices
_ROUNDS = 2


@dataclass(frozen=True)
class SweepCase:
    """One convolution: 3x3 and depthwise ones have zeros around the map."""

    kind: str  # one of KINDS
    side: int
    stride: int

    def graph(self) -> Graph:
        """The convolution alone, with weights of zeros: what they are changes no time."""
        taps, side = (1 if self.kind == "1x1" else 3), ceil_div(self.side, self.stride)
        shape = (1, taps, taps, _CHANNELS) if self.kind == "depthwise" else (_CHANNELS, taps, taps, _CHANNELS)
        before = max((side - 1) * self.stride + taps - self.side, 0) // 2
        after = max((side - 1) * self.stride + taps - self.side, 0) - before
        attributes = {"stride": (self.stride, self.stride), "padding": Padding(before, after, before, after)}
        op, made = ("DEPTHWISE_CONV_2D", DepthwiseConv2D) if self.kind == "depthwise" else ("CONV_2D", Conv2D)
        tensors = {
            0: Tensor(0, "input", (1, self.side, self.side, _CHANNELS)),
            1: Tensor(1, "weights", shape, data=np.zeros(shape, np.float32)),
            2: Tensor(2, "bias", (_CHANNELS,), data=np.zeros(_CHANNELS, np.float32)),
            3: Tensor(3, "output", (1, side, side, _CHANNELS)),
        }
        node = Node(op, (0, 1, 2), (3,), made(**attributes), 0)  # type: ignore[arg-type]
        return Graph(f"{self.kind} {self.side} {self.stride}", MappingProxyType(tensors), (node,), (0,), (3,))


CASES = tuple(SweepCase(kind, side, stride) for side in SIDES for stride in STRIDES for kind in KINDS)


@dataclass(frozen=True)
class CaseTimes:
    """Milliseconds of a case by work-group."""

    case: SweepCase
    ms: Mapping[GroupSides, float]


def sweep(
    timer: TimesKernels,
    device: Device,
    budget: Budget,
    cases: Sequence[SweepCase] = CASES,
    is_over: Callable[[], bool] = bool,
) -> Iterator[CaseTimes]:
    """Each case with all work-groups that the device has, as long as there is time, the smallest maps first.

    `is_over` is asked before each measurement; a case that it ends is left out.
    """
    for case in cases:
        if budget.is_spent:
            return
        times = _case_times(timer, device, case, is_over)
        timer.release()
        if is_over():
            return
        yield CaseTimes(case, MappingProxyType(times))


def _case_times(
    timer: TimesKernels, device: Device, case: SweepCase, is_over: Callable[[], bool]
) -> dict[GroupSides, float]:
    base = compile_graph(case.graph(), device)
    (kernel,) = base.kernels
    assert kernel.tile is not None
    made = {}
    for local in GROUPS:
        is_sum = case.kind != "depthwise"
        if math.prod(local) <= device.limits.work_group_invocations and (local[2] == 1 or is_sum):
            tile = replace(kernel.tile, local=local, rows=1, z_slices=1, flat=False, baked=False, leaves=True)
            choices = Choices({kernel.signature: Choice(0.0, 0.0, tile, True, 0)})
            made[local] = lower_to_glsl(base.graph, replace(device, choices=choices))
    times: dict[GroupSides, float] = {}
    for _ in range(_ROUNDS):
        for local, lowered in made.items():
            if is_over():
                return times
            ms = timer.ms(lowered.kernels[0], partial(isolated, base, lowered, device=device))
            if ms is not None:
                times[local] = min(ms, times.get(local, ms))
    return times


def best_groups(found: Sequence[CaseTimes]) -> tuple[GroupSides, float] | None:
    """The work-group with the least time over all cases, and how much longer than the best of each case that takes.

    Each case counts alike, by its times over its least one. None where no work-group could be measured in all.
    """
    chosen = [each.ms for each in found]
    common = [local for local in GROUPS if all(local in times for times in chosen)]
    if not chosen or not common:
        return None
    share = {local: sum(times[local] / min(times.values()) for times in chosen) / len(chosen) for local in common}
    best = min(share, key=share.__getitem__)
    return best, share[best]

"""Tunes a model on a device: measures and chooses fusion settings and tiles, longest kernels first.

It works in small steps, so that callers can show progress or do other work in between; what was found so far is never
lost. Ops are put together by the settings of each family that leads to other kernels, unless that takes much longer;
these kernels get the best of one kind of choice (candidates.py), then the settings are chosen, then the other kinds.
"""

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from ..device.choices import UNMEASURED, Choice, Choices, FusionChoice
from ..device.device import Device
from ..device.families import TUNINGS
from ..device.tile import Tile
from ..model.graph import Graph
from ..model.layout import Precision
from ..plan.body import Body
from ..plan.compile_options import CompileOptions
from ..plan.fusion import group_nodes
from ..plan.signature import graph_signature, signature_of
from ..targets.glsl.compiled_graph import CompiledGraph, compile_graph
from ..targets.glsl.glsl_kernel import Kernel, Lowered, lower_to_glsl
from .candidates import DeviceFacts, Search
from .halving import LEAST_GAIN, Budget, Winner, winners
from .isolated import MakeAlone, isolated
from .outputs import Results, agrees, same_bits
from .tuning_table import FUSION_SETTINGS
from .variants import KernelKey, Slot, Variants, by_key, by_signature, key_of

LEAST_SHARE = 0.03  # of the network's time: kernels that take less together stay as they are
_FUSION_SHARE = 0.3  # of the time, for settings of fusion
_HOPELESS = 1.5  # times as long as the best settings of fusion, with the family's tiles
_ROUNDS = 3  # of measurements of whole networks

_Settings = Mapping[str, int]  # of FUSION_SETTINGS


@dataclass(frozen=True)
class TuningStep:
    """What was just done, and which part of the network's time has been looked at."""

    what: str
    share: float


class TimesKernels(Protocol):
    """A device as the tuner sees it: KernelTimer, or a simulated one."""

    facts: DeviceFacts

    def ms(self, kernel: Kernel, alone: MakeAlone) -> float | None:
        """Milliseconds of a dispatch, measured anew; None for a kernel that cannot be had."""

    def outputs(self, kernel: Kernel, alone: MakeAlone) -> Results | None:
        """What it computes from sample inputs."""

    def release(self) -> None:
        """Free all programs; it goes on with others."""


class Tuner:
    """One model on one device. `choices` holds what was found; steps() does the work."""

    def __init__(
        self, timer: TimesKernels, source: Graph, device: Device, budget: Budget, precision: Precision = "fp32"
    ) -> None:
        """`device` may hold choices of earlier tunings: these are gone on with. Raises as compile_graph."""
        self.choices = UNMEASURED
        self._timer, self._budget = timer, budget
        self._device = device
        self._base = compile_graph(source, device, CompileOptions(precision=precision))
        self._precision = self._base.precision
        self._name = graph_signature(self._base.graph, self._precision)
        self._least_ms: dict[KernelKey, float] = {}

    @property
    def device(self) -> Device:
        """The device with all that is known of it so far."""
        return replace(self._device, choices=self._device.choices.updated(self.choices))

    def steps(self) -> Generator[TuningStep, None, None]:
        """Do the work; closing the iterator frees what is compiled. Raises DeviceError where OpenGL fails."""
        try:
            known = self._device.choices.graphs.get(self._name)
            plans = [known.settings] if known else (yield from self._hopeful_plans())
            for settings in plans:
                yield from self._tune_kernels(0, settings)
            best = plans[0] if len(plans) == 1 else (yield from self._decided(plans))
            for kind in range(1, len(Search.KINDS)):
                yield from self._tune_kernels(kind, best)
        finally:
            self._timer.release()

    # Fusion -------------------------------------------------------------------------------------------------------

    def _hopeful_plans(self) -> Generator[TuningStep, None, list[_Settings]]:
        """Settings of fusion that may lead to the fastest kernels, the device's own first.

        Where it takes too long to time all of them, these alone.
        """
        found: dict[frozenset[KernelKey], _Settings] = {}
        tunings = (self._device.tuning, *TUNINGS.values())
        for values in dict.fromkeys(tuple(getattr(tuning, name) for name in FUSION_SETTINGS) for tuning in tunings):
            settings = dict(zip(FUSION_SETTINGS, values, strict=True))
            found.setdefault(frozenset(map(key_of, self._lowered(settings).kernels)), settings)
        plans, left_s = list(found.values()), self._budget.left_s
        yield from self._timed(plans[:1])
        if (left_s - self._budget.left_s) * len(plans) > _FUSION_SHARE * left_s:
            return plans[:1]
        times_ms = yield from self._timed(plans)
        return [plan for plan, ms in zip(plans, times_ms, strict=True) if ms <= _HOPELESS * min(times_ms)]

    def _decided(self, plans: Sequence[_Settings]) -> Generator[TuningStep, None, _Settings]:
        """The fastest of some settings, with the kernels that were found for each."""
        times_ms = yield from self._timed(plans)
        if math.inf in times_ms:  # there was no time left
            return plans[0]
        best = min(range(len(plans)), key=times_ms.__getitem__)
        if times_ms[best] > times_ms[0] * (1 - LEAST_GAIN):
            best = 0
        choice = FusionChoice(times_ms[best], times_ms[0], dict(plans[best]))
        self.choices = self.choices.with_graph(self._name, choice)
        return plans[best]

    def _timed(self, plans: Sequence[_Settings]) -> Generator[TuningStep, None, list[float]]:
        """Milliseconds of all kernels of each plan, by the least that was ever measured of each; else infinity."""
        lowered = [self._lowered(settings) for settings in plans]
        for _ in range(_ROUNDS):
            for number, each in enumerate(lowered):
                for key, (kernel, _) in by_key(each.kernels).items():
                    ms = None if self._budget.is_spent else self._timer.ms(kernel, partial(self._alone, each))
                    if ms is None:
                        return [math.inf] * len(plans)
                    self._least_ms[key] = min(ms, self._least_ms.get(key, ms))
                    yield TuningStep(f"fusion {number + 1} of {len(plans)}", 0.0)
        self._timer.release()
        return [
            sum(self._least_ms[key] * count for key, (_, count) in by_key(each.kernels).items()) for each in lowered
        ]

    # Kernels ------------------------------------------------------------------------------------------------------

    def _tune_kernels(self, kind: int, settings: _Settings) -> Iterator[TuningStep]:
        """One kind of choice for all kernels of a plan, the longest first."""
        lowered = self._lowered(settings)
        slots = yield from self._slots(kind, lowered, settings)
        variants = Variants(lowered, slots, partial(self._with_tiles, settings))
        for slot in slots:
            yield from self._tune_kernel(slot, variants, kind)

    def _slots(self, kind: int, lowered: Lowered, settings: _Settings) -> Generator[TuningStep, None, list[Slot]]:
        """Kernels that take the most time, but for LEAST_SHARE of it, and that were not looked at in this way yet."""
        times_ms: dict[str, float] = {}
        kernels = by_signature(lowered.kernels)
        for signature, (kernel, count) in kernels.items():
            ms = self._least_ms.get(key_of(kernel))
            if ms is None and not self._budget.is_spent:
                ms = self._timer.ms(kernel, partial(self._alone, lowered))
                yield TuningStep("timing", 0.0)
            if ms is None:
                return []
            self._least_ms[key_of(kernel)] = ms
            times_ms[signature] = ms * count
        self._timer.release()
        bodies = self._bodies(settings)
        slots, done_ms, total_ms = list[Slot](), 0.0, sum(times_ms.values())
        for signature in sorted(times_ms, key=times_ms.__getitem__, reverse=True):
            if total_ms - done_ms < LEAST_SHARE * total_ms:
                break
            done_ms += times_ms[signature]
            kernel, known = kernels[signature][0], self.device.choices.kernels.get(signature)
            if kernel.tile and (not known or known.searched <= kind):
                search = Search(bodies[signature], self._device, self._timer.facts)
                slots.append(Slot(signature, kernel, search.others(kind, kernel.tile), min(1.0, done_ms / total_ms)))
        return slots

    def _tune_kernel(self, slot: Slot, variants: Variants, kind: int) -> Iterator[TuningStep]:
        """One kernel, whose results with other tiles must be those of the one that it has."""

        def results(number: int) -> Results | None:
            kernel, lowered = variants.kernel(slot, number)
            return self._timer.outputs(kernel, partial(self._alone, lowered))

        wanted = results(0)
        right = {0: wanted is not None}

        def measure(number: int) -> float | None:
            if number not in right:
                found = results(number)
                right[number] = agrees(found, wanted, self._precision != "fp32")
            kernel, lowered = variants.kernel(slot, number)
            return self._timer.ms(kernel, partial(self._alone, lowered)) if right[number] else None

        for winner in winners(0, range(1, 1 + len(slot.others)), measure, self._budget):
            yield TuningStep(slot.kernel.name, slot.share)
            if winner is not None:
                self._keep(slot, winner, same_bits(results(winner.candidate), wanted), kind)
        self._timer.release()

    def _keep(self, slot: Slot, winner: Winner[int], exact: bool, kind: int) -> None:
        """Add what was found to what earlier steps have found for the same kernel."""
        tile = slot.others[winner.candidate - 1] if winner.candidate else slot.kernel.tile
        assert tile is not None
        before = self.device.choices.kernels.get(slot.signature)
        default_ms = winner.default_ms
        if before is not None:
            default_ms, exact = before.default_ms * winner.default_ms / before.ms, exact and before.same_bits
        choice = Choice(winner.ms, default_ms, tile, exact, kind + 1)
        self.choices = self.choices.with_kernel(slot.signature, choice)

    # Compiling ----------------------------------------------------------------------------------------------------

    def _lowered(self, settings: _Settings, choices: Choices | None = None) -> Lowered:
        """All kernels, by settings of fusion and by choices, those found so far if none are given."""
        known = choices or self.device.choices
        device = replace(self._device.with_tuning(**settings), choices=Choices(known.kernels))
        return lower_to_glsl(
            self._base.graph, device, CompileOptions(precision=self._precision, compile_budget_s=math.inf)
        )

    def _with_tiles(self, settings: _Settings, tiles: Mapping[str, Tile]) -> Lowered:
        """All kernels, some of them with these tiles."""
        tried = {signature: Choice(0.0, 0.0, tile, True, 0) for signature, tile in tiles.items()}
        return self._lowered(settings, self.device.choices.updated(Choices(tried)))

    def _alone(self, lowered: Lowered, kernel: Kernel) -> CompiledGraph:
        return isolated(self._base, lowered, kernel, self._device)

    def _bodies(self, settings: _Settings) -> dict[str, Body]:
        groups = group_nodes(self._base.graph, self._device.with_tuning(**settings), precision=self._precision)
        return {signature_of(body, self._precision): body for body in groups.bodies}

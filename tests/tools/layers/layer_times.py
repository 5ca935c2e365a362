"""Times RetinaFace's layers in our code for the CPU and in rivals', at several sizes of pictures.

As in the paper on direct convolution on a Raspberry Pi: layer by layer, as a chain, and as rates beside the roofs of
this machine. All run in turn; outputs are compared with TensorFlow Lite's.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from texelflow.app.bench.measuring.cpu_peak import cpu_facts
from texelflow.app.console import Console
from texelflow.app.files import Files, Write, settle
from texelflow.app.plots import check_matplotlib
from texelflow.app.signals import StopFlag, exit_code, stop_flag
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.targets.llvm.compiler import available, native_target
from texelflow.gpu_delegate.targets.llvm.pool import MOST_POOL_THREADS

from ..in_turn import call_in_turn
from .contenders import Contender
from .cpu_roofs import CpuRoofs, measure_roofs
from .retinaface_layers import LEAST_SIDE, MOST_SIDE, ConvLayer, layers_of, retinaface, single_layers
from .rivals import how_to_install, parse_rivals, rival_maker

OURS = "native"
FROM_PLANES = " from planes"  # behind a rival's name, where it packs its input by itself
FROM_BYTES = " from bytes"  # behind ours, where the picture is RGBA
_OF_PICTURES = (FROM_PLANES, FROM_BYTES)
_MOST_SIZES, _MOST_SECONDS = 16, 600.0
_CHAIN_TURNS = 10  # times as long as a layer
_TOLERANCE = 1e-4  # of the largest value

_Maker = Callable[[Graph], Contender]
_Figures = dict[str, Any]


@dataclass(frozen=True)
class LayersBench:
    """What the tool is asked to do."""

    against: str | None = None
    sizes: str = "320,640,800"
    threads: int = 1
    seconds: float = 1.0  # of each layer, for all contenders together
    plot: Path | None = None
    force: bool = False


def bench_layers(options: LayersBench, console: Console) -> tuple[_Figures, int]:
    """Measure: the figures, and the exit code: a signal's, or 1 if our outputs differ. Raises TexelflowError."""
    sizes = parse_sides(options.sizes)
    _check(options)
    rivals, lacking = parse_rivals(options.against)
    if lacking:
        console.note(how_to_install(lacking))
    if why := available():
        if options.plot is not None:
            raise UsageError(f"--plot needs peaks that code for this CPU measures: {why}")
        console.note(f"without our own code: {why}")
    openers = {rival: rival_maker(rival) for rival in rivals}
    figures: _Figures = {
        "cpu": cpu_facts()["name"],
        "threads": options.threads,
        "versions": {rival: text for rival, (_, text) in openers.items()},
        "sizes": {},
    }
    with stop_flag() as stop:
        roofs = None if why else measure_roofs(native_target(), options.threads, partial(bool, stop))
        figures["roofs"] = _roof_figures(roofs)
        if not why:
            figures["target"] = native_target().name
        bench = _Bench(options, dict(_makers(openers, options.threads, not why)), roofs, stop, console)
        for size in sizes:
            if not stop:
                figures["sizes"][str(size)] = bench.measured(size)
    figures["interrupted"] = bool(stop)
    return figures, exit_code(stop.number) or int(bench.differs)


def parse_sides(text: str) -> tuple[int, ...]:
    """320,640,800. Raises UsageError."""
    parts = text.split(",")
    is_fine = len(parts) <= _MOST_SIZES and all(part.isdecimal() and len(part) <= 4 for part in parts)
    sizes = tuple(dict.fromkeys(int(part) for part in parts)) if is_fine else ()
    if not sizes or not all(LEAST_SIDE <= size <= MOST_SIDE for size in sizes):
        raise UsageError(
            f"--sizes {text[:80]}: sides from {LEAST_SIDE} to {MOST_SIDE} with commas between them are needed"
        )
    return sizes


def _check(options: LayersBench) -> None:
    if not 1 <= options.threads <= MOST_POOL_THREADS:
        raise UsageError(f"--threads {options.threads}: it goes from 1 to {MOST_POOL_THREADS}")
    if not 0 < options.seconds <= _MOST_SECONDS:
        raise UsageError(f"--seconds {options.seconds:g}: seconds from just above 0 to {_MOST_SECONDS:g} are needed")
    if options.plot is not None:
        check_matplotlib()
        settle(Files((), (Write("--plot", options.plot, "drawing"),)), options.force)


def _makers(openers: Mapping[str, Any], threads: int, has_native: bool) -> Iterator[tuple[str, _Maker]]:
    """What makes each contender of a graph, all of them twice: the second way is for pictures alone."""
    if has_native:
        from .layer_native import open_ours

        yield OURS, partial(open_ours, form="planes", threads=threads)
        yield OURS + FROM_BYTES, partial(open_ours, form="bytes", threads=threads)
    for rival, (make, _) in openers.items():
        yield rival, partial(make, form="packed", threads=threads)
        yield rival + FROM_PLANES, partial(make, form="planes", threads=threads)


def _is_of_pictures(name: str) -> bool:
    return name.endswith(_OF_PICTURES)


def _roof_figures(roofs: CpuRoofs | None) -> _Figures | None:
    if roofs is None:
        return None
    return {
        "gflops": {str(lanes): round(rate * 2e-9, 2) for lanes, rate in roofs.macs_per_s.items()},
        "gbytes": {level: round(rate * 1e-9, 2) for level, rate in roofs.bytes_per_s.items()},
    }


class _Bench:
    """Measures one size after the other."""

    def __init__(
        self, options: LayersBench, makers: dict[str, _Maker], roofs: CpuRoofs | None, stop: StopFlag, console: Console
    ) -> None:
        self.differs = False
        self._options, self._makers, self._roofs, self._stop, self._console = options, makers, roofs, stop, console

    def measured(self, size: int) -> _Figures:
        """Figures of the chain and of each layer, as far as there was time."""
        chain, rows = retinaface(size), list[_Figures]()
        layers, seconds = layers_of(chain), self._options.seconds
        with self._console.steps(f"layers at {size}") as report:
            whole = self._figures(chain, self._makers, seconds * _CHAIN_TURNS)
            for number, (layer, graph) in enumerate(zip(layers, single_layers(chain), strict=True)):
                report(1 + number, 1 + len(layers), f"{size}: {layer.name}")
                if self._stop:
                    break
                makers = {name: make for name, make in self._makers.items() if not number or not _is_of_pictures(name)}
                rows.append({**self._of_layer(layer), **self._figures(graph, makers, seconds)})
        rows = [row for row in rows if row["times"]]
        return {"chain": {"mflop": sum(layer.flops for layer in layers) / 1e6, **whole}, "layers": rows}

    def _of_layer(self, layer: ConvLayer) -> _Figures:
        cost, found = layer.cost, {"name": layer.name, "kind": layer.kind, "side": layer.side}
        found |= {"mflop": layer.flops / 1e6, "mbytes": cost.moved_bytes / 1e6}
        found |= {"intensity": round(layer.intensity, 4), "paper_intensity": round(layer.paper_intensity, 4)}
        if self._roofs is not None:
            level = self._roofs.level(cost.moved_bytes)
            found |= {"level": level, "roof_us": self._roofs.peaks(level).least_ms(cost) * 1e3}
        return found

    def _figures(self, graph: Graph, makers: Mapping[str, _Maker], seconds: float) -> _Figures:
        """Times of each contender, and how far its output is from TensorFlow Lite's at most."""
        contenders = {name: make(graph) for name, make in makers.items()}
        levels = np.random.default_rng(0).integers(0, 256, graph.tensors[graph.inputs[0]].shape)
        values = (levels / 255).astype(np.float32)
        outputs = {}
        for name, contender in contenders.items():
            contender.write(values)
            outputs[name] = contender.read()
        errors = {name: float(np.abs(output - outputs["xnnpack"]).max()) for name, output in outputs.items()}
        if errors.get(OURS, 0.0) > _TOLERANCE * max(1.0, float(np.abs(outputs["xnnpack"]).max())):
            self.differs = True
            self._console.warn(f"{graph.name}: our output is {errors[OURS]:.2g} away from TensorFlow Lite's")
        calls = {name: contender.run for name, contender in contenders.items()}
        found = call_in_turn(calls, seconds, self._options.threads, partial(bool, self._stop))
        times = {name: taken.figures() for name, taken in found.items() if taken.wall_s}
        return {"times": times, "errors": errors}

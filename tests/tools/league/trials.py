"""Measures one model, step by step, each step in a process of its own that is bounded in time and memory."""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import texelflow
from tests.fuzz.children import in_child
from tests.tools.in_turn import call_in_turn
from texelflow.gpu_delegate.base.cache_folder import VARIABLE
from texelflow.gpu_delegate.cpu.interpreter_module import load_interpreter_module
from texelflow.gpu_delegate.delegate.native_delegate import NativePartsDelegate
from texelflow.gpu_delegate.delegate.runtime_check import check_runtimes
from texelflow.gpu_delegate.delegate.selection import COSTS_MORE
from texelflow.gpu_delegate.model.reasons import BY_FUNCTION

from .entrants import Contents, Entrant, contents_of, input_range_of
from .judge import compared
from .runs import (
    NO_SIZES,
    OURS,
    WAYS,
    Arrays,
    Draw,
    Sizes,
    SkippedError,
    Way,
    calls_of,
    started,
    threads,
    with_open_sizes,
)

OPEN_SIZES = (0, 16, 256, 4096)  # that are tried, the recorded ones first
RUNS, STREAM_RUNS = 4, 20  # of a model, and of one with states, from a reset
UNPAID = "its partition costs more than it saves"
Figures = dict[str, Any]
_REFERENCE_S = 30.0  # of the CPU, after which no further run begins
_MOST_REASON = 160


@dataclass(frozen=True)
class Bounds:
    """Of each step."""

    cpu_s: float = 300.0  # and five times that by the clock
    memory_bytes: int = 6 << 30
    times_s: float = 3.0  # of runs in turn; 0: none


def measured(entrant: Entrant, folder: Path, bounds: Bounds) -> Figures:
    """All figures of one model; a step that failed has `failed`. The folder is for files between steps."""
    folder.mkdir(parents=True, exist_ok=True)
    row: Figures = {
        "name": entrant.name, "sha256": entrant.sha256, "size": entrant.size_bytes, "catalogue": entrant.is_catalogued,
    }  # fmt: skip
    row["file"] = found = step_in_child(lambda: asdict(contents_of(entrant.path)), folder, bounds)
    if "failed" in found:
        return row
    numbered = {name: {int(key): each for key, each in found[name].items()} for name in ("ops", "quantized")}
    contents = Contents(**found | numbered)
    row["file"] = {name: value for name, value in found.items() if name not in numbered} | {"nodes": contents.nodes}
    row["file"]["common"] = dict(Counter(op for ops in contents.ops.values() for op in ops).most_common(5))
    trial = _Trial(entrant, contents, folder)
    for size in OPEN_SIZES if contents.has_open_sizes else ():
        found = step_in_child(partial(trial.sized, size), folder, bounds)
        if "failed" not in found:
            row["sizes"] = found
            trial = replace(trial, sizes={int(index): tuple(shape) for index, shape in found.items()})
            break
    for way in WAYS[:2]:
        row[way] = step_in_child(partial(trial.run, way), folder, bounds)
    for way in OURS:
        with _caches(folder / f"caches-{way}"):
            row[way] = step_in_child(partial(trial.run, way), folder, bounds)
            if "ready_s" in row[way]:
                row[way]["warm"] = step_in_child(partial(trial.start, way), folder, bounds)
    row["compared"] = step_in_child(trial.compare, folder, bounds)
    ran = [way for way in WAYS if row[way].get("runs")]
    if bounds.times_s and ran:
        with _caches(folder / "caches-gl"):
            row["ms"] = step_in_child(lambda: trial.times(ran, bounds.times_s), folder, bounds)
    return row


@dataclass(frozen=True)
class _Trial:
    """The steps of one model, each a function that a child runs."""

    entrant: Entrant
    contents: Contents
    folder: Path
    sizes: Sizes = field(default_factory=dict)

    def sized(self, size: int) -> Figures:
        """Inputs with a size where the file leaves it open, if kernels make something of it; 0: as recorded."""
        sizes = with_open_sizes(self.entrant.path, size) if size else NO_SIZES
        interpreter, _ = started("reference", self.entrant.path, sizes)
        calls = calls_of(interpreter, self.contents.signatures)
        (arrays,) = self._draw.outputs(calls, 1)
        if not all(array.size for array in arrays):
            raise ValueError("an output is empty")
        return {str(index): shape for index, shape in sizes.items()}

    def run(self, way: Way) -> Figures:
        """Start and run it; outputs are kept in the folder."""
        start_s = process_time()
        interpreter, delegate = started(way, self.entrant.path, self.sizes)
        found: Figures = {"ready_s": _since(start_s), "runs": 0}
        if delegate is not None:
            found |= share_of(delegate, self.contents)
        try:
            calls = calls_of(interpreter, self.contents.signatures)
            outputs = list[Arrays]()
            start_s = process_time()
            for arrays in self._draw.outputs(calls, self._count()):
                if not outputs:
                    found["first_run_s"] = _since(start_s)
                outputs.append(arrays)
                if way == "reference" and process_time() - start_s > _REFERENCE_S:
                    break
        except SkippedError as error:
            return found | {"skipped": str(error)}
        except (RuntimeError, ValueError, TypeError) as error:
            return found | {"failed": one_line(f"a run: {error}")}
        kept = {f"{run}.{number}": array for run, arrays in enumerate(outputs) for number, array in enumerate(arrays)}
        np.savez(self._file(way), **kept)
        return found | {"runs": len(outputs)}

    def start(self, way: Way) -> Figures:
        """Again, with what the first start has kept."""
        start_s = process_time()
        started(way, self.entrant.path, self.sizes)
        return {"ready_s": _since(start_s)}

    def compare(self) -> Figures:
        """Every way with the reference kernels, and ours with XNNPACK."""
        outputs = {way: self._outputs(way) for way in WAYS if self._file(way).exists()}
        pairs: list[tuple[Way, Way]] = [*((way, "reference") for way in WAYS[1:]), *((way, "xnnpack") for way in OURS)]
        return {
            f"{way} {other}": compared(outputs[way], outputs[other])
            for way, other in pairs
            if way in outputs and other in outputs
        }

    def times(self, ways: Sequence[Way], seconds: float) -> Figures:
        """The least milliseconds of an invocation, in turn, of all but the reference kernels."""
        invocations: dict[str, Callable[[], object]] = {}
        kept = []
        for way in (way for way in WAYS[1:] if way in ways):
            kept.append(started(way, self.entrant.path, self.sizes))
            (first, *_) = calls_of(kept[-1][0], self.contents.signatures)
            first.run(self._draw.inputs(first.inputs, 0))
            invocations[way] = first.invoke
        invocations["auto"] = self._chosen()
        times = call_in_turn(invocations, seconds, threads())
        return {name: round(min(each.wall_s) * 1e3, 4) for name, each in times.items()}

    def _chosen(self) -> Callable[[], object]:
        """A run of the interpreter that chooses by itself, of the same threads and sizes."""
        interpreter = texelflow.Interpreter(self.entrant.path, threads=threads())
        for index, shape in self.sizes.items():
            interpreter.resize_tensor_input(index, shape)
        interpreter.allocate_tensors()
        (first, *_) = calls_of(interpreter, self.contents.signatures)
        first.run(self._draw.inputs(first.inputs, 0))
        return first.invoke

    @property
    def _draw(self) -> Draw:
        own = {} if self.entrant.input_range or self.contents.signatures else self.contents.quantized
        return Draw(input_range_of(self.entrant), own)

    def _count(self) -> int:
        """As many runs as the reference kernels made in their time, if they ran."""
        wanted = STREAM_RUNS if self.contents.has_states else RUNS
        file = self._file("reference")
        return len(self._outputs("reference")) if file.exists() else wanted

    def _file(self, way: Way) -> Path:
        return self.folder / f"{way}.npz"

    def _outputs(self, way: Way) -> list[Arrays]:
        with np.load(self._file(way)) as file:
            places = [tuple(map(int, name.split("."))) for name in file.files]
            runs, each = (max(numbers) + 1 for numbers in zip(*places, strict=True))
            return [[file[f"{run}.{number}"] for number in range(each)] for run in range(runs)]


def share_of(delegate: Any, contents: Contents) -> Figures:
    """How many operators a delegate has taken, of all graphs that are run by themselves, and why not the rest."""
    taken: dict[int, set[int]] = {number: set() for number in contents.ops}
    for number, partition in _partitions(delegate):
        own = getattr(partition, "partition", partition)
        taken.setdefault(number, set()).update({*own.nodes, *getattr(own, "constants", ())})
    reasons: Counter[str] = Counter()
    for number, ops in contents.ops.items():
        said = _reasons(delegate, number)
        for place, op in enumerate(ops):
            if place not in taken[number]:
                reasons[f"{op}: {general(said.get(place) or _error(delegate) or 'left alone')}"] += 1
    count = sum(map(len, taken.values()))
    by_function = sum(n for why, n in reasons.items() if why.endswith(BY_FUNCTION))
    found = {
        "taken": count,
        "by_function": by_function,
        "partitions": len(delegate.partitions),
        "left": dict(reasons.most_common()),
    }
    return found | {"refused": _error(delegate) if not count else "", "renderer": delegate.renderer}


def general(reason: str) -> str:
    """A reason without the numbers of tensors and figures of costs, so that equal ones are one."""
    if reason.startswith(COSTS_MORE):
        return UNPAID
    return one_line(re.sub(r"\btensor \d+", "a tensor", reason))


def one_line(text: str) -> str:
    """Without line ends, and without the advice of TensorFlow Lite's on ops that it lacks."""
    return " ".join(text.split()).partition(". See instructions:")[0][:_MOST_REASON]


def check_once() -> None:
    """Have TensorFlow Lite's runtime checked in this process, whose children then start without that."""
    check_runtimes(load_interpreter_module(newer=True).__name__)


def _partitions(delegate: Any) -> Iterator[tuple[int, Any]]:
    """Each with the number of its subgraph."""
    if isinstance(delegate, NativePartsDelegate):
        yield from ((each.number, part) for each in delegate.subgraphs for part in each.parts)
    else:
        yield from ((partition.subgraph, partition) for partition in delegate.partitions)


def _reasons(delegate: Any, number: int) -> Mapping[int, str]:
    if isinstance(delegate, NativePartsDelegate):
        return next((each.found.reasons for each in delegate.subgraphs if each.number == number), {})
    found: Mapping[int, str] = delegate.reasons_of(number)
    return found


def _error(delegate: Any) -> str:
    return one_line(str(delegate.error)) if delegate.error else ""


def _since(start_s: float) -> float:
    return round(process_time() - start_s, 3)


def step_in_child(work: Callable[[], Figures], folder: Path, bounds: Bounds) -> Figures:
    """What a child finds out; `failed` says how it ended if it has not."""
    file = folder / "step.json"
    file.unlink(missing_ok=True)

    def written() -> str:
        file.write_text(json.dumps(work()))
        return ""

    ending = in_child(written, bounds.cpu_s, bounds.memory_bytes)
    if ending.how != "text":
        how = {"hung": f"more than {bounds.cpu_s:g} CPU s", "too large": f"more than {bounds.memory_bytes >> 30} GiB"}
        return {"failed": one_line(how.get(ending.how) or f"{ending.how}: {ending.text}")}
    found: Figures = json.loads(file.read_text())
    return found


@contextmanager
def _caches(folder: Path) -> Iterator[None]:
    """Caches of ours and of Mesa's in a folder; Mesa makes no folder below another one that is not there."""
    folder.mkdir(exist_ok=True)
    before = dict(os.environ)
    os.environ[VARIABLE] = str(folder / "ours")
    os.environ |= {"MESA_SHADER_CACHE_DIR": str(folder / "mesa"), "MESA_SHADER_CACHE_DISABLE": "false"}
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)

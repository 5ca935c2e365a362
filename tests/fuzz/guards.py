"""Finds native kernels that read or write outside of their memory, by pages that may not be touched.

    python -m tests.fuzz.guards cases                    # every case of every op; also: cases ABS CONV_2D
    python -m tests.fuzz.guards graphs --count 500 --quantized int8

Arena and weights lie between pages that may not be touched, once at the end and once at the beginning of what may be.
Their margins (targets/llvm/planes.py), which kernels may read and never use, are filled with three patterns, and so is
what networks use in turns before each run. Found is a crash, a margin that is written, and a result that depends on the
pattern or on a run before. Each part has its own process.
"""

import argparse
import ctypes
import mmap
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from unittest.mock import patch

import numpy as np

from tests.fuzz.children import in_child
from tests.fuzz.graphs import VALUES, made
from tests.helpers.case_group import CaseGroup
from tests.helpers.native import code_of
from tests.model_files.model_builder import Array
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.cases.table import cases_of
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.layout import FLOAT_BYTES, LINE_FLOATS
from texelflow.gpu_delegate.model.packing import Float32Array
from texelflow.gpu_delegate.ops.registry import SUPPORTED_OPS
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.llvm import native_runtime as runtime
from texelflow.gpu_delegate.targets.llvm import planes
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.ir import Module
from texelflow.gpu_delegate.targets.llvm.native_program import compile_native
from texelflow.gpu_delegate.targets.llvm.native_runtime import CheckedNetwork
from texelflow.gpu_delegate.targets.llvm.planes import MARGIN_FLOATS
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool

PATTERNS = (0x7FC0DEAD, 0xFF800000, 0x7F7FFFFF)  # NaN, minus infinity, the largest number
CASES_AT_A_TIME, GRAPHS_AT_A_TIME = 8, 10
SECONDS = 120.0
UNTOUCHED = "untouched"


@dataclass(frozen=True)
class Part:
    """Memory between two pages that may not be touched: its words, and where the floats of a network begin and end."""

    words: "np.ndarray[tuple[int], np.dtype[np.uint32]]"
    start: int
    end: int
    pattern: int

    def written(self) -> str:
        """Where its margins are not as they were, or ""."""
        for place, margin in (("in front", self.words[: self.start]), ("behind", self.words[self.end :])):
            found = np.flatnonzero(margin != self.pattern)
            if found.size:
                return f"{found.size} words of a margin {place} are written, from {int(found[0])} on"
        return ""


class Guards:
    """Reserves floats as planes.reserve_floats does, but between such pages."""

    def __init__(self, pattern: int, at_end: bool) -> None:
        self.pattern, self.at_end, self.parts = pattern, at_end, list[Part]()

    def reserve(self, count: int) -> Float32Array:
        """See planes.reserve_floats. The memory stays until the process ends, since views of it may."""
        page = mmap.PAGESIZE
        size = -(-FLOAT_BYTES * (count + 2 * MARGIN_FLOATS + LINE_FLOATS) // page) * page
        address = _mapped(size + 2 * page)
        _forbid(address, page)
        _forbid(address + page + size, page)
        words = np.ctypeslib.as_array((ctypes.c_uint32 * (size // FLOAT_BYTES)).from_address(address + page))
        words[:] = self.pattern
        last = words.size - MARGIN_FLOATS - count
        start = last - last % LINE_FLOATS if self.at_end else MARGIN_FLOATS
        words[start : start + count] = 0
        self.parts.append(Part(words, start, start + count, self.pattern))
        return words[start : start + count].view(np.float32)

    def written(self) -> str:
        """What was written beside any of its parts, or ""."""
        return next(filter(None, (part.written() for part in self.parts)), "")


def _mapped(size: int) -> int:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    access, flags = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    found = library.mmap(None, size, access, flags, -1, 0)
    if found in (None, 2**64 - 1):
        raise MemoryError(f"{size} bytes")
    return int(found)


def _forbid(address: int, size: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    if library.mprotect(address, size, 0):
        raise OSError(ctypes.get_errno(), "mprotect")


def fault_of(graph: Graph, inputs: Sequence[Array]) -> str:
    """What a graph's code does beside its memory, in a line; "" for nothing. Ends the process where it reads further.

    Raises UnsupportedError for a graph without code.
    """
    target, module = native_target(), Module()
    program = compile_native(graph, target, module=module)
    code, pool, results = code_of(module, [program], target), WorkerPool(target, 1), list[list[bytes]]()
    for number, pattern in enumerate(PATTERNS):
        guards = Guards(pattern, at_end=number != 1)
        with (
            patch.object(planes, "reserve_floats", guards.reserve),
            patch.object(runtime, "reserve_floats", guards.reserve),
        ):
            network = CheckedNetwork(program, code, pool)
        assert network._arena is not None, "it is the network's own"
        for _ in range(2):
            network._arena.view(np.uint32)[:] = pattern
            results.append([np.asarray(values).tobytes() for values in network.run(inputs)])
        if text := guards.written():
            return text
        if results[-1] != results[0]:
            return f"the result depends on what is left over: {pattern:#x} gives another"
        if results[-2] != results[-1]:
            return "the result depends on the run before"
    return ""


def of_cases(op: str, first: int) -> str:
    """UNTOUCHED, refused, or what is wrong with some cases of an op."""
    group = CaseGroup(cases_of(op)[first : first + CASES_AT_A_TIME])
    return _outcome(group.graph, group.inputs(first))


def of_graphs(first: int, last: int, kind: str) -> str:
    """The same of some random graphs; the first fault."""
    for seed in range(first, last):
        data, inputs, _ = made(seed, kind)
        text = _outcome(read_model(data), inputs[0])
        if text not in (UNTOUCHED, "refused"):
            return f"seed {seed}: {text}"
    return UNTOUCHED


def _outcome(graph: Graph, inputs: Sequence[Array]) -> str:
    try:
        return fault_of(graph, inputs) or UNTOUCHED
    except UnsupportedError:
        return "refused"


def works(options: argparse.Namespace) -> Iterator[tuple[str, Callable[[], str]]]:
    """What runs in a child each, with its name."""
    kind = options.quantized
    if options.what == "cases":
        for op in options.ops or SUPPORTED_OPS:
            for first in range(0, len(cases_of(op)), CASES_AT_A_TIME):
                yield f"{op}, cases from {first} on", partial(of_cases, op, first)
    else:
        end = options.seed + options.count
        for first in range(options.seed, end, GRAPHS_AT_A_TIME):
            last = min(first + GRAPHS_AT_A_TIME, end)
            yield f"graphs from {first} on, quantized {kind}", partial(of_graphs, first, last, kind)


def main(arguments: Sequence[str]) -> int:
    """Run and tell; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.guards", description="Guard the memory of kernels.")
    parser.add_argument("what", choices=("cases", "graphs"))
    parser.add_argument("ops", nargs="*", metavar="OP", help="of the cases; all where none is named")
    parser.add_argument("--count", type=int, default=500, help="of graphs")
    parser.add_argument("--seed", type=int, default=0, help="the first graph")
    parser.add_argument("--kind", choices=VALUES, default="float")
    options, counted = parser.parse_args(arguments), Counter[str]()
    native_target()  # before the children, which then need not
    for name, work in works(options):
        ending = in_child(work, SECONDS)
        text = ending.text if ending.how == "text" else f"{ending.how}: {ending.text}"
        is_good = text in (UNTOUCHED, "refused")
        counted[text if is_good else "fails"] += 1
        if not is_good:
            print(f"{name}: {text}", file=sys.stderr, flush=True)
    print(f"{sum(counted.values())} parts: {dict(counted)}")
    return int("fails" in counted or not counted)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The lines of text that say which operations run where, and why.

The first line has the words of TensorFlow Lite's own GPU delegate (GetOpsToReplace in its model_builder.cc): at first
it claimed nothing behind the first operation that it could not take, and said so; since it claims what comes behind as
well, it leaves out "First". It says nothing of a model that it claims as a whole.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..base.wording import counted, number_ranges
from ..model.reasons import BY_FUNCTION
from ..plan.compiled_parts import AnyParts
from ..targets.glsl.compiled_partitions import CompiledPartitions
from .selection import COSTS_MORE

REASONS_MOST = 40  # lines


@dataclass(frozen=True)
class OpLine:
    """One op of the model: how many operators, and which are left to the CPU, by reason."""

    op: str
    count: int
    left: Mapping[str, tuple[int, ...]]

    @property
    def left_count(self) -> int:
        return sum(map(len, self.left.values()))


def op_lines(found: AnyParts) -> tuple[OpLine, ...]:
    """The most frequent op first. Reasons that differ in a tensor's number alone are one."""
    counts = Counter(node.op for node in found.graph.nodes)
    left: dict[str, dict[str, list[int]]] = {op: {} for op in counts}
    for number, reason in found.reasons.items():
        general = re.sub(r"\btensor \d+", "a tensor", reason)
        left[found.graph.nodes[number].op].setdefault(general, []).append(number)
    return tuple(
        OpLine(op, count, {reason: tuple(numbers) for reason, numbers in left[op].items()})
        for op, count in counts.most_common()
    )


def claim_line(found: CompiledPartitions) -> str:
    """How many operations run on the GPU and on the CPU; "" if all run on the GPU."""
    total, left = len(found.graph.nodes), len(found.reasons)
    if not left:
        return ""
    if left == total:
        return f"No operations will run on the GPU, and all {total} operations will run on the CPU."
    first = "First " if min(found.reasons) == total - left else ""
    return f"{first}{total - left} operations will run on the GPU, and the remaining {left} on the CPU."


def reason_lines(found: AnyParts) -> tuple[str, ...]:
    """A line for each op and each reason for which operations of it stay on the CPU, in a bounded number."""
    lines = [
        f"{line.op} ({number_ranges(numbers)}): {reason}"
        for line in op_lines(found)
        for reason, numbers in _summed_up(line.left)
    ]
    more = len(lines) - REASONS_MOST
    return (*lines[:REASONS_MOST], *([f"... and {counted(more, 'line')} more"] if more > 0 else []))


def report_lines(found: CompiledPartitions) -> tuple[str, ...]:
    """All that is said of a model of which something is left to the CPU; of others nothing."""
    claimed = claim_line(found)
    return (claimed, *reason_lines(found)) if claimed else ()


def summary_line(found: Sequence[CompiledPartitions], xnnpack: int, builtin: int) -> str:
    """What runs where, in one line, of all subgraphs together.

    Of the operators that are left, Python functions run some, XNNPACK others, builtin kernels the rest. Constants that
    the CPU computes once are among these, too.
    """
    functions = sum(reason == BY_FUNCTION for each in found for reason in each.reasons.values())
    parts = [(functions, "by functions"), (xnnpack, "by XNNPACK"), (builtin, "by builtin kernels")]
    total, left = sum(len(each.graph.nodes) for each in found), sum(len(each.reasons) for each in found)
    dispatches = sum(len(compiled.kernels) for each in found for compiled in each.compiled)
    partitions = sum(len(each.partitions) for each in found)
    where = f"in {counted(partitions, 'partition')} ({counted(dispatches, 'dispatch')})"
    line = f"{total - left} of {counted(total, 'operator')} on the GPU"
    return ", ".join(
        [f"{line} {where}" if partitions else line, *(f"{count} {whose}" for count, whose in parts if count)]
    )


def _summed_up(left: Mapping[str, tuple[int, ...]]) -> Iterable[tuple[str, tuple[int, ...]]]:
    """Reasons with their operators; partitions that do not pay, each with figures of its own, are one line."""
    costly = [reason for reason in left if reason.startswith(COSTS_MORE)]
    for reason, numbers in left.items():
        if reason not in costly:
            yield reason, numbers
    if costly:
        others = "; other partitions likewise" if costly[1:] else ""
        yield costly[0] + others, tuple(sorted(number for reason in costly for number in left[reason]))


def summed_reasons(reasons: Mapping[int, str]) -> tuple[str, ...]:
    """Why operators are left to TensorFlow Lite, by their numbers in the file: a line for each reason."""
    left: dict[str, tuple[int, ...]] = {}
    for number, reason in sorted(reasons.items()):
        left[reason] = (*left.get(reason, ()), number)
    return tuple(f"operators {number_ranges(numbers)}: {reason}" for reason, numbers in _summed_up(left))

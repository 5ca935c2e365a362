"""Prints advice on a model."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from texelflow.gpu_delegate.base.wording import counted, number_ranges, sized
from texelflow.gpu_delegate.model.graph import Graph

from ...advice.advice import Advice
from ...advice.cost import RunCost
from ...console import Console

_MOST_TENSORS = 3  # that are named
_LONGEST_NAME = 40


def show_advice(console: Console, graph: Graph, advice: Sequence[Advice], has_peaks: bool) -> None:
    """What to change, worst first, then what is in the file in vain but costs nothing here."""
    worth = [each for each in advice if not each.is_free]
    free = [each for each in advice if each.is_free]
    console.show("")
    if not worth:
        console.show(Text("Advice: nothing in this model costs more than it has to", "bold"))
    else:
        how = "at this machine's peaks" if has_peaks else "times are unknown: no peaks were measured"
        console.show(Text(f"Advice: {counted(len(worth), 'change')}, the worst first, each by itself; {how}", "bold"))
    for number, each in enumerate(worth, 1):
        _show_one(console, graph, number, each)
    console.show(*[""] * bool(free))
    for each in free:
        console.show(Text(f"costs nothing here: {each.what} ({_where(graph, each)})", "dim"))


def _show_one(console: Console, graph: Graph, number: int, advice: Advice) -> None:
    console.show(Text(f"\n{number:2}. {advice.what}", "bold"))
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    saved = _amount(advice.cost) + ("" if advice.is_exact else ", or more")
    for label, text in (
        ("saves", saved), ("where", _where(graph, advice)), ("why", advice.why), ("change", advice.change)
    ):  # fmt: skip
        table.add_row(f"    {label}", Text(text, "yellow" if label == "saves" else ""))
    console.show(table)


def _amount(cost: RunCost) -> str:
    """What of it there is: 0.56 ms (estimated), 3 dispatches, 1323 KiB moved, 0.21 MMAC."""
    parts = [] if cost.ms is None else [f"about {cost.ms:.3f} ms"]
    parts += [counted(cost.dispatches, "dispatch")] if cost.dispatches else []
    parts += [f"{sized(cost.moved_bytes)} moved"] if cost.moved_bytes else []
    parts += [f"{cost.macs / 1e6:.2f} MMAC"] if cost.macs else []
    return ", ".join(parts)


def _where(graph: Graph, advice: Advice) -> str:
    """Operators by number, and the names of the first tensors."""
    names = [_short(graph.tensors[tensor].name) for tensor in advice.tensors]
    rest = len(names) - _MOST_TENSORS
    tensors = ", ".join(names[:_MOST_TENSORS]) + (f" and {rest} more" if rest > 0 else "")
    numbers = number_ranges(advice.operators)
    operators = f"operator{'s' if len(advice.operators) != 1 else ''} {numbers}" if numbers else ""
    return "; ".join(filter(None, [operators, tensors]))


def _short(name: str) -> str:
    """The end of a long name, which tells most."""
    return name if len(name) <= _LONGEST_NAME else f"...{name[3 - _LONGEST_NAME :]}"

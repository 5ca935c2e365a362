"""`texelflow inspect --ops`: prints where ops run, and what TensorFlow Lite's own GPU delegate does with them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.text import Text

from texelflow.gpu_delegate.base.wording import counted
from texelflow.gpu_delegate.cases.table import cases_of
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.ops.registry import OPS, SUPPORTED_OPS
from texelflow.gpu_delegate.programs.support import native_reason, types_taken, unsupported_reason

from ...console import Console
from .inspect_tables import plain_table
from .original_ops import ORIGINAL_OPS, OriginalSupport

_NO_OP = "left to TensorFlow Lite"


@dataclass(frozen=True)
class OpSupport:
    """What there is to say of an op. Reasons are None where it runs."""

    op: str
    role: str  # "" of an op that is not known
    reason: str | None  # why not on the GPU
    native_reason: str | None  # why not in the CPU's own code
    cases: int  # in the table that tests share
    types: tuple[str, ...]
    original: OriginalSupport
    operators: int = 0  # of the model


def op_support(op: str, operators: int = 0) -> OpSupport:
    """Of any name."""
    original = ORIGINAL_OPS.get(op, OriginalSupport())
    if op not in SUPPORTED_OPS:
        return OpSupport(op, "", _NO_OP, _NO_OP, 0, (), original, operators)
    role, cases = OPS[op].role, len(cases_of(op))
    if role == "folded":  # known before anything runs
        return OpSupport(op, role, None, None, cases, types_taken(op), original, operators)
    reason, native = unsupported_reason(op), native_reason(op)
    return OpSupport(op, role, reason, native, cases, types_taken(op), original, operators)


def all_ops() -> tuple[str, ...]:
    """What is known here or taken by the original, by name."""
    return tuple(sorted({*SUPPORTED_OPS, *ORIGINAL_OPS}, key=str.casefold))


def list_ops(graph: Graph | None, console: Console, json: bool) -> None:
    """Print those of a model, or all."""
    counts = Counter(node.op for node in graph.nodes) if graph else {}
    rows = [op_support(op, counts[op]) for op in sorted(counts)] if graph else [op_support(op) for op in all_ops()]
    if json:
        console.json({row.op: _as_json(row) for row in rows})
    else:
        _show(rows, graph, console)


def _as_json(row: OpSupport) -> dict[str, Any]:
    found: dict[str, Any] = {
        "gpu": row.reason is None,
        "reason": row.reason,
        "native": row.native_reason is None,
        "native_reason": row.native_reason,
        "role": row.role or None,
        "cases": row.cases,
        "types": row.types,
        "original": asdict(row.original),
    }
    return found | ({"operators": row.operators} if row.operators else {})


def _show(rows: Sequence[OpSupport], graph: Graph | None, console: Console) -> None:
    heads = [("op", "left"), ("role", "left"), ("GPU", "left"), ("CPU", "left"), ("types", "left"), ("cases", "right")]
    heads += [("OpenGL", "left"), ("OpenCL", "left"), ("notes", "left")]
    table = plain_table(*([("operators", "right")] if graph else []), *heads)
    table.columns[int(graph is not None)].no_wrap = True
    for row in rows:
        original, why = row.original, list[str]()
        why += [row.reason] if row.reason else []
        why += [f"CPU: {row.native_reason}"] if row.native_reason and row.native_reason != row.reason else []
        why += [original.note] if original.note else []
        cells: list[str | Text] = [
            row.op, row.role or "-", _extent(row.reason), _extent(row.native_reason), _types(row.types),
            str(row.cases or "-"), _styled(original.opengl), _styled(original.opencl), Text("; ".join(why), "dim"),
        ]  # fmt: skip
        table.add_row(*([str(row.operators)] if graph else []), *cells)
    console.show(table)
    here, theirs = (sum(row.reason is None for row in rows), _counts(rows))
    console.show(
        "",
        f"{counted(len(rows), 'op')}: {here} on the GPU; by TensorFlow Lite's own GPU delegate, as its source says, "
        f"{theirs['opengl']} on OpenGL and {theirs['opencl']} on OpenCL.",
        "CPU: our own code for it. int32: any, and int64. int8: one scale a tensor.",
        "cases: what tests compare with TensorFlow Lite.",
    )


def _types(names: Sequence[str]) -> str:
    return " ".join(name.removesuffix("32") if name == "float32" else name for name in names) or "-"


def _counts(rows: Sequence[OpSupport]) -> Mapping[str, int]:
    return {name: sum(getattr(row.original, name) != "no" for row in rows) for name in ("opengl", "opencl")}


def _extent(reason: str | None) -> Text:
    return _styled("yes" if reason is None else "no")


def _styled(extent: str) -> Text:
    return Text(extent, {"yes": "green", "part": "yellow"}.get(extent, "red"))

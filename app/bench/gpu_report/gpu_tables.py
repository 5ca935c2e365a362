"""Makes the tables of a report of `bench gpu`, as text in rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

_Row = tuple[str, ...]
_Measured = Sequence[Mapping[str, Any]]  # of a section, those with figures

UNKNOWN = "-"
_MIB = 1 << 20
_LITERT_WAYS = ("gpu_fp32", "gpu_default", "cpu")


@dataclass(frozen=True)
class ReportTable:
    """Cells are text; a title tells tables of one section apart."""

    columns: _Row
    rows: tuple[_Row, ...]
    title: str = ""


def tables_of(section: str, measurements: Sequence[Mapping[str, Any]]) -> tuple[ReportTable, ...]:
    """The tables of a section; none where nothing was measured. Raises LookupError, TypeError for figures cut short."""
    done = [each for each in measurements if each["figures"] is not None]
    return tuple(table for table in TABLES[section](done) if table.rows) if done else ()


def text(value: object, form: str = "") -> str:
    """A figure as a cell: numbers in a form, nothing as a dash."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    return format(value, form) if form and isinstance(value, int | float) else str(value)


def _doctor(done: _Measured) -> Iterator[ReportTable]:
    findings = done[0]["figures"]["findings"]
    rows = (tuple(map(str, (each["state"], each["name"], each["found"], each["advice"]))) for each in findings)
    yield ReportTable(("state", "what", "found", "what to do"), tuple(rows))


def _device(done: _Measured) -> Iterator[ReportTable]:
    found = done[0]["figures"]
    memory, clock = found["gpu_memory"] or {}, found["clock"]
    facts = {
        "renderer": found["renderer"],
        "vendor": found["vendor"],
        "OpenGL": found["gl_version"],
        "tuned as": found["family"],
        "timed by": f"{clock['kind']} {clock['reason']}".strip(),
        "GPU memory": _mib(memory.get("total_bytes")),
        "CPU": found["cpu"]["name"],
        "extensions": len(found["extensions"]),
    }
    limits = ((name.replace("_", " "), value) for name, value in found["limits"].items() if value != "")
    yield ReportTable(("", ""), tuple((name, text(value)) for name, value in facts.items()))
    yield ReportTable(("limit", ""), tuple((name, text(value)) for name, value in limits), "Limits")


def _peaks(done: _Measured) -> Iterator[ReportTable]:
    found = done[0]["figures"]
    rows = tuple(
        (name, text(found[f"{key}_fp32_gflops"], ",.0f"), text(found[f"{key}_fp16_gflops"], ",.0f"))
        for name, key in ((found["cpu_name"], "cpu"), (found["renderer"], "gpu"))
    )
    yield ReportTable(("GFLOP/s", "fp32", "fp16"), rows)
    memory = (text(found["gpu_gb_per_s"], ",.1f"), text(found["gpu_dispatch_us"], ".1f"))
    yield ReportTable(("GPU memory, GB/s", "a dispatch that waits for the one before, us"), (memory,))


def _fidelity(done: _Measured) -> Iterator[ReportTable]:
    rows = [
        (each["name"], text(each["figures"]["passed"]), str(each["figures"]["verdict"]),
         text(each["figures"].get("worst_part_of_limit"), ".0%"))
        for each in done
    ]  # fmt: skip
    yield ReportTable(("model", "agrees", "", "worst error, of what is allowed"), tuple(rows))


def _frames(done: _Measured) -> Iterator[ReportTable]:
    columns = ("median_ms", "mean_ms", "p95_ms", "init_ms")
    rows = [
        (each["name"], *(text(each["figures"].get(name), ".2f") for name in columns),
         text(each["figures"]["dispatches"]), text(each["figures"]["mask_mean_error"], ".1e"))
        for each in done
    ]  # fmt: skip
    titles = ("", "ms (median)", "mean", "p95", "start, ms", "dispatches", "error of the mask's mean")
    yield ReportTable(titles, tuple(rows))


def _models(done: _Measured) -> Iterator[ReportTable]:
    found = {each["name"]: each["figures"] for each in done}
    names = dict.fromkeys(name.rpartition(", ")[0] for name in found)
    yield ReportTable(
        ("model", "MMAC", "dispatches", "GPU ms (median)", "GMAC/s", "of peak", "sum of dispatches, ms",
         "at the roofs, ms", "CPU ms (median)"),
        tuple(_model_row(name, found.get(f"{name}, gpu"), found.get(f"{name}, cpu")) for name in names),
    )  # fmt: skip
    for name in names:
        if per_op := (found.get(f"{name}, gpu") or {}).get("per_op"):
            yield _dispatches(name, per_op)


def _model_row(name: str, gpu: Mapping[str, Any] | None, cpu: Mapping[str, Any] | None) -> _Row:
    gpu, per_op = gpu or {}, (gpu or {}).get("per_op") or {}
    roofs = [row.get("least_ms") for row in per_op.get("rows", [])]
    return (
        name, text(gpu.get("mmac"), ",.0f"), text(gpu.get("dispatches")), text(gpu.get("median_ms"), ".3f"),
        text(gpu.get("gmacs"), ",.1f"), text(gpu.get("peak_share"), ".1%"),
        text(per_op.get("sum_ms") if roofs else None, ".3f"),
        text(sum(roofs) if roofs and None not in roofs else None, ".3f"), text((cpu or {}).get("median_ms"), ".3f"),
    )  # fmt: skip


def _dispatches(name: str, per_op: Mapping[str, Any]) -> ReportTable:
    rows = [
        (
            str(number), row["name"], text(row["ms"], ".4f"), text(row["mmac"], ".2f"),
            text(row["mmac"] / row["ms"] if row["ms"] else None, ",.1f"),
            text(row["moved_bytes"] / row["ms"] / 1e6 if row["ms"] else None, ",.1f"),
            text(row.get("least_ms"), ".4f"), text(row.get("roof")), text(row["repeats"]),
        )
        for number, row in enumerate(per_op["rows"])
    ]  # fmt: skip
    columns = ("", "dispatch", "ms", "MMAC", "GMAC/s", "GB/s", "at its roof, ms", "roof", "repeats")
    return ReportTable(columns, tuple(rows), f"{name}: each dispatch, {per_op['clock']}")


def _tuning(done: _Measured) -> Iterator[ReportTable]:
    tuned = [each for each in done if "whole" in each["figures"]]
    rows = [
        (each["name"], text(whole["default_ms"], ".3f"), text(whole["ms"], ".3f"),
         " to ".join(map(str, whole["dispatches"])), text(whole["agrees"]))
        for each in tuned
        for whole in each["figures"]["whole"]
    ]  # fmt: skip
    yield ReportTable(("network", "by default, ms", "tuned, ms", "dispatches", "agrees"), tuple(rows))
    yield from _frames([each for each in done if each not in tuned])


def _uploads(done: _Measured) -> Iterator[ReportTable]:
    rows = done[0]["figures"]["rows"]
    ways = tuple(rows[0]["ms"]) if rows else ()
    cells = ((row["size"], *(text(row["ms"][way], ".3f") for way in ways), row["fastest"]) for row in rows)
    yield ReportTable(("size", *(f"{way}, ms" for way in ways), "fastest"), tuple(cells))


def _waits(done: _Measured) -> Iterator[ReportTable]:
    rows = tuple(tuple(map(text, row.values())) for row in done[0]["figures"]["waits"])
    yield ReportTable(("wait type", "latency, ms", "least, ms", "CPU of its thread, ms", "CPU of all, ms"), rows)


def _live(done: _Measured) -> Iterator[ReportTable]:
    sides = done[0]["figures"]["overlay"]
    rows = [
        (overlay, stage, *(text(times[key], ".3f") for key in ("wall_ms", "own_ms", "calls")))
        for overlay, side in sides.items()
        for stage, times in side["stages"].items()
    ]
    yield ReportTable(("overlay", "stage", "ms", "of it Python's own", "calls of OpenGL"), tuple(rows))


def _memory(done: _Measured) -> Iterator[ReportTable]:
    keys = ("gpu_taken_bytes", "gpu_total_bytes", "process_bytes", "process_peak_bytes")
    rows = tuple((row["size"], *(_mib(row[key]) for key in keys)) for row in done[0]["figures"]["rows"])
    yield ReportTable(("size", "taken on the GPU", "GPU in all", "process", "its peak"), rows)


def _energy(done: _Measured) -> Iterator[ReportTable]:
    found = done[0]["figures"]
    rows = [
        (row["backend"], text(row["frames_per_s"], ".1f"), name, text(joules, ".4f"),
         text(row["j_per_frame_above_idle"][name], ".4f"), text(found["idle_w"][name], ".1f"))
        for row in found["rows"]
        for name, joules in row["j_per_frame"].items()
    ]  # fmt: skip
    columns = ("backend", "frames/s", "counter", "J a frame", "above idle", "idle, W")
    yield ReportTable(columns, tuple(rows))
    yield ReportTable(("not counted",), tuple((reason,) for reason in found["reasons"]))


def _peers(done: _Measured) -> Iterator[ReportTable]:
    lite = [each for each in done if "cpu" in each["figures"]]
    rows = [
        (each["name"], *(text((each["figures"].get(way) or {}).get("median_ms"), ".3f") for way in _LITERT_WAYS),
         text((each["figures"].get("gpu_fp32") or {}).get("fully_accelerated")),
         text(each["figures"].get("gpu_fp32_error"), ".1e"))
        for each in lite
    ]  # fmt: skip
    yield ReportTable(("", "GPU fp32, ms", "GPU by default", "CPU", "all of it", "fp32 error"), tuple(rows))
    others = tuple((each["name"], text(each["figures"]["median_ms"], ".3f")) for each in done if each not in lite)
    yield ReportTable(("frame job at 640x480", "ms (median)"), others)


def _mib(size_bytes: int | None) -> str:
    return UNKNOWN if size_bytes is None else f"{size_bytes / _MIB:,.0f} MiB"


TABLES: Mapping[str, Callable[[_Measured], Iterator[ReportTable]]] = MappingProxyType(
    {
        "doctor": _doctor,
        "device": _device,
        "peaks": _peaks,
        "fidelity": _fidelity,
        "frame": _frames,
        "tuning": _tuning,
        "models": _models,
        "sizes": _frames,
        "uploads": _uploads,
        "waits": _waits,
        "live": _live,
        "memory": _memory,
        "energy": _energy,
        "peers": _peers,
    }
)

"""Checks that a model gives the same bytes under each plan of memory."""

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from tests.helpers.sharing import all_plans, outputs_by_plan, planned_anew
from tests.models.measure import Target
from texelflow.gpu_delegate.device.device import HARDWARE, Device
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.memory.memory_options import MemoryOptions
from texelflow.gpu_delegate.reading.reader import load_model
from texelflow.gpu_delegate.targets.gl.context import Context, open_context
from texelflow.gpu_delegate.targets.gl.runtime import device_of
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import compile_partitions

PLANNED_COLUMNS = ("model", "kernels for", "partitions", "plans", "in place", "naive MiB", "MiB", "differ", "s")


def measure_planned(target: Target, _: float = 0.0) -> dict[str, Any]:
    """Of kernels for this machine and for a GPU; `differ` has the plans that have changed a value, of both."""
    with open_context() as context:
        devices = {"software": device_of(context), "hardware": HARDWARE}
        return {
            "name": target.name, "reason": "",
            "devices": {name: _compared(context, target, device) for name, device in devices.items()},
        }  # fmt: skip


def _compared(context: Context, target: Target, device: Device) -> dict[str, Any]:
    start_s, plans = perf_counter(), all_plans()
    parts = compile_partitions(load_model(target.path), device, CompileOptions(memory=MemoryOptions("naive"))).compiled
    alignment_bytes = device.fitted().offset_alignment_bytes
    totals, in_place, differ = dict.fromkeys(plans, 0), 0, set[str]()
    for part in parts:
        compiled = {name: planned_anew(part, plan, alignment_bytes) for name, plan in plans.items()}
        found = outputs_by_plan(context, compiled)
        differ |= {name for name in plans if found[name] != found["naive"]}
        in_place += max(len(each.in_place) for each in compiled.values())
        for name, each in compiled.items():
            totals[name] += each.plan.total_bytes
    return {
        "partitions": len(parts), "plans": len(plans), "in_place": in_place, "bytes": totals, "differ": sorted(differ),
        "seconds": round(perf_counter() - start_s, 1),
    }  # fmt: skip


def is_planned_right(_: Target, figures: Mapping[str, Any]) -> bool:
    """Whether all plans give the same."""
    return not figures["reason"] and not any(each["differ"] for each in figures["devices"].values())


def planned_rows(figures: Mapping[str, Any]) -> list[tuple[object, ...]]:
    """Of the table: one for each kind of kernels."""
    if figures["reason"]:
        return [(figures["name"], *("-",) * (len(PLANNED_COLUMNS) - 2), figures["reason"])]
    return [
        (
            figures["name"], device, each["partitions"], each["plans"], each["in_place"] or "-",
            f"{each['bytes']['naive'] / 2**20:.2f}", f"{min(each['bytes'].values()) / 2**20:.2f}",
            ", ".join(each["differ"]) or "-", each["seconds"],
        )
        for device, each in figures["devices"].items()
    ]  # fmt: skip

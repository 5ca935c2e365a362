"""Measurements of `bench gpu` that no verb makes, by name; prints the figures as JSON.

Each runs as a process of its own (measuring_process.py), so that whatever a driver does, the report goes on.
"""

import ctypes
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from types import MappingProxyType
from typing import Any

import numpy as np

from texelflow.gpu_delegate.base.errors import TexelflowError
from texelflow.gpu_delegate.targets.gl.context import Context, open_context
from texelflow.gpu_delegate.targets.gl.span_clock import SpanClock

from ...frame.backend_choice.frame_job import CpuFrameJob, FrameJob, frame_job
from ...frame.inference.backends import CpuChoice
from ...frame.inference.cpu_engine import open_cpu_path
from ...frame.textures.upload_path import fastest, upload_times_ms
from ...media.frames import clip_frames, parse_frame_size
from ...models.model_loading import load_segmentation
from ...picture.picture import rgba_format, rgba_picture
from ...process_usage import process_usage
from ...verbs.doctor.doctor_probe import describe_context
from ...verbs.peaks import measure_half_macs, measure_peaks
from ..measuring.cpu_peak import cpu_facts, measure_cpu_macs
from ..measuring.energy import EnergyCounter, energy_counters, spent_j

_Figures = dict[str, Any]

_GPU_S = 3.0  # of a spell in which energy is counted
_NVX, _NVX_TOTAL_KB, _NVX_FREE_KB = "GL_NVX_gpu_memory_info", 0x9048, 0x9049
_ATI, _ATI_TEXTURE_FREE_KB = "GL_ATI_meminfo", 0x87FC


def device() -> _Figures:
    """The GPU, its driver, its limits, and by which clock it is timed."""
    with open_context() as context:
        clock = SpanClock(context).choice
        family, memory = context.family, gpu_memory(context)
        return {
            **describe_context(context),
            "family": family.name,
            "clock": asdict(clock),
            "gpu_memory": asdict(memory) if memory else None,
            "cpu": cpu_facts(),
        }


def peaks() -> _Figures:
    """The paper's Table 1: billions of floating-point operations a second, two for each multiply-accumulate."""
    cpu_macs, cpu = measure_cpu_macs(), cpu_facts()
    with open_context() as context:
        found, half_macs = measure_peaks(context), measure_half_macs(context)
        return {
            "renderer": context.renderer,
            "gpu_fp32_gflops": _gflops(found.macs_per_s if found else None),
            "gpu_fp16_gflops": _gflops(half_macs),
            "gpu_gb_per_s": round(found.bytes_per_s / 1e9, 2) if found else None,
            "gpu_dispatch_us": round(found.dispatch_s * 1e6, 2) if found else None,
            "cpu_name": cpu["name"],
            "cpu_fp32_gflops": _gflops(cpu_macs),
            "cpu_fp16_gflops": None,
            "cpu_has_half_arithmetic": cpu["has_half_arithmetic"],
        }


def uploads(*sizes: str) -> _Figures:
    """Milliseconds of a frame in RGBA by each way up, for each size."""
    with open_context() as context:
        rows = []
        for size in sizes:
            times_ms = upload_times_ms(context, rgba_format(parse_frame_size(size)))
            named = {path.name: round(ms, 4) for path, ms in times_ms.items()}
            rows.append({"size": size, "ms": named, "fastest": fastest(times_ms).name})
        return {"rows": rows}


def memory(model_name: str, *sizes: str) -> _Figures:
    """What the frame job takes for each size: memory of the process and, where its driver tells, of the GPU."""
    model, rows = load_segmentation(model_name), []
    for size in sizes:
        with open_context() as context:
            before = gpu_memory(context)
            job = _ready(frame_job(context, model, rgba_format(parse_frame_size(size))), size)
            after, usage = gpu_memory(context), process_usage()
            job.release()
        rows.append({
            "size": size,
            "gpu_taken_bytes": before.free_bytes - after.free_bytes if before and after else None,
            "gpu_total_bytes": before.total_bytes if before else None,
            "process_bytes": usage.resident_bytes, "process_peak_bytes": usage.peak_bytes,
        })  # fmt: skip
    return {"rows": rows}


def energy(model_name: str) -> _Figures:
    """Joules of a frame of the frame job, on the GPU and on the CPU, above those of an idle machine."""
    counters, reasons = energy_counters()
    if not counters:
        return {"rows": [], "idle_w": {}, "reasons": reasons}
    idle = spent_j(counters, lambda: time.sleep(_GPU_S))
    idle_w = {name: joules / _GPU_S for name, joules in idle.items()}
    model = load_segmentation(model_name)
    with open_context() as context:
        rows = [_energy_row("gl", frame_job(context, model, _VGA), counters, idle_w)]
    rows.append(_energy_row("cpu", CpuFrameJob(open_cpu_path(model, _VGA, CpuChoice("tflite"))), counters, idle_w))
    return {"rows": rows, "idle_w": {name: round(watts, 2) for name, watts in idle_w.items()}, "reasons": reasons}


@dataclass(frozen=True)
class GpuMemory:
    """Bytes in all, None where the driver does not tell, and free ones."""

    total_bytes: int | None
    free_bytes: int


def gpu_memory(context: Context) -> GpuMemory | None:
    """What an extension says of the memory of the GPU; None where the driver has none."""
    gl, values = context.gl, (ctypes.c_int * 4)()
    if _NVX in gl.extensions:
        return GpuMemory(gl.integer(_NVX_TOTAL_KB) << 10, gl.integer(_NVX_FREE_KB) << 10)
    if _ATI in gl.extensions:
        gl.glGetIntegerv(_ATI_TEXTURE_FREE_KB, values)
        return GpuMemory(None, values[0] << 10)
    return None


_VGA = rgba_format((640, 480))


def _ready(job: Any, size: str) -> Any:
    """The job after its first frame: drivers allocate late."""
    job.run(rgba_picture(np.array(clip_frames(parse_frame_size(size))[0])))
    return job


def _energy_row(backend: str, job: FrameJob, counters: list[EnergyCounter], idle_w: Mapping[str, float]) -> _Figures:
    pictures = [rgba_picture(np.array(frame)) for frame in clip_frames((640, 480))]
    job.run(pictures[0])
    done, start = count(), time.perf_counter()

    def work() -> None:
        while time.perf_counter() - start < _GPU_S:
            job.run(pictures[next(done) % len(pictures)])

    joules = spent_j(counters, work)
    took_s, frames = time.perf_counter() - start, max(next(done), 1)
    job.release()
    return {
        "backend": backend,
        "frames": frames,
        "frames_per_s": round(frames / took_s, 2),
        "j_per_frame": {name: round(value / frames, 6) for name, value in joules.items()},
        "j_per_frame_above_idle": {
            name: round((value - idle_w[name] * took_s) / frames, 6) for name, value in joules.items()
        },
    }


def _gflops(macs_per_s: float | None) -> float | None:
    return round(2 * macs_per_s / 1e9, 2) if macs_per_s else None


PARTS: Mapping[str, Callable[..., _Figures]] = MappingProxyType(
    {part.__name__: part for part in (device, peaks, uploads, memory, energy)}
)


def main(name: str, arguments: Sequence[str]) -> int:
    """Run one part: the exit code."""
    try:
        print(json.dumps(PARTS[name](*arguments)))
    except TexelflowError as error:
        print(f"texelflow: {error}", file=sys.stderr)
        return 2
    return 0

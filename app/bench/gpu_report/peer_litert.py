"""Times LiteRT's own GPU accelerator on a .tflite file, and measures its error.

A program of its own, for any Python that has ai-edge-litert from 2.3 on and NumPy: `python peer_litert.py MODEL RUNS`.
The accelerator (ML Drift over WebGPU) wants a Vulkan driver: a GPU's, or Mesa's lavapipe from 25 on. The last line is
one JSON object; a line that begins with `texelflow: ` says why there is none.
"""

import json
import os
import sys
import tempfile
import time
from typing import Any

import numpy as np
import numpy.typing as npt

_WARMUP = 5


def main(path: str, runs: int) -> None:
    """Time the model on the GPU, in float32 and as it is by default, and on the CPU."""
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())  # its WebGPU looks for nothing without
    try:
        import ai_edge_litert.compiled_model as litert
        from ai_edge_litert.gpu_options import GpuOptions
        from ai_edge_litert.hardware_accelerator import HardwareAccelerator
        from ai_edge_litert.options import Options
    except ImportError as error:
        sys.exit(f"texelflow: ai-edge-litert with a GPU accelerator (2.3 or newer) is not installed: {error}")

    def timed(options: Any) -> tuple[dict[str, float], list[npt.NDArray[Any]]]:
        start = time.perf_counter()
        model = litert.CompiledModel.from_file(path, options=options)
        init_ms = (time.perf_counter() - start) * 1e3
        times_ms, outputs = _run(model, runs)
        return {
            "init_ms": round(init_ms, 2),
            "median_ms": round(float(np.median(times_ms)), 3),
            "min_ms": round(min(times_ms), 3),
            "fully_accelerated": bool(model.is_fully_accelerated()),
        }, outputs

    def on_gpu(float32: bool) -> Any:
        gpu = GpuOptions(enforce_f32=float32, hint_waiting_for_completion=True)
        return Options(hardware_accelerators=HardwareAccelerator.GPU, gpu_options=gpu)

    cpu, wanted = timed(Options(hardware_accelerators=HardwareAccelerator.CPU))
    try:
        fp32, found = timed(on_gpu(float32=True))
        halves, _ = timed(on_gpu(float32=False))
    except RuntimeError as error:
        print(json.dumps({"cpu": cpu, "runs": runs}), flush=True)
        sys.exit(f"texelflow: LiteRT's accelerator finds no GPU with Vulkan: {' '.join(str(error).split())}")
    worst = max(float(np.abs(one - other).max()) for one, other in zip(found, wanted, strict=True))
    print(json.dumps({"cpu": cpu, "gpu_fp32": fp32, "gpu_default": halves, "gpu_fp32_error": worst, "runs": runs}))


def _run(model: Any, runs: int) -> tuple[list[float], list[npt.NDArray[Any]]]:
    """Milliseconds from inputs in RAM to outputs in RAM, and the outputs."""
    signature = next(iter(model.get_signature_list()))
    sources = list(model.get_input_tensor_details(signature).values())
    targets = list(model.get_output_tensor_details(signature).values())
    inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
    rng, times_ms, found = np.random.default_rng(0), list[float](), list[npt.NDArray[Any]]()
    values = [rng.random(source["shape"], np.float32) for source in sources]
    for _ in range(_WARMUP + runs):
        start = time.perf_counter()
        for buffer, value in zip(inputs, values, strict=True):
            buffer.write(value)
        model.run_by_index(0, inputs, outputs)
        found = [
            np.array(buffer.read(int(np.prod(target["shape"])), np.float32))
            for buffer, target in zip(outputs, targets, strict=True)
        ]
        times_ms.append((time.perf_counter() - start) * 1e3)
    return times_ms[_WARMUP:], found


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

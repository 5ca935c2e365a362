"""Decides what --backend auto takes: the GPU or the CPU, by the kind of GPU, measured times and the user's own choice.

Times are measured in backend_times.py, which is loaded only where they are needed.
"""

import os
from typing import TYPE_CHECKING

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.wording import meant

if TYPE_CHECKING:
    from ..inference.backends import Backend
    from .backend_times import BackendTimes

AUTO_CHOICE = "TEXELFLOW_AUTO"  # in the environment: what auto takes; nothing is measured
AUTO_CHOICES = ("gl", "cpu", "hardware")  # hardware: the GPU, unless it is one of software


def auto_backend(is_software: bool, times: "BackendTimes | None", by_hand: str = "") -> "Backend":
    """What auto takes where OpenGL computes: by hand, by the times, or, where there are none, by the kind of GPU."""
    if by_hand in ("gl", "cpu"):
        return "gl" if by_hand == "gl" else "cpu"
    if times is None or times.cpu_ms is None:
        return "cpu" if is_software else "gl"
    return "gl" if times.gl_ms is not None and times.gl_ms <= times.cpu_ms else "cpu"


def chosen_by_hand() -> str:
    """What TEXELFLOW_AUTO says, "" where it says nothing. Raises UsageError for anything else."""
    chosen = os.environ.get(AUTO_CHOICE, "").strip()
    if chosen and chosen not in AUTO_CHOICES:
        raise UsageError(f"{AUTO_CHOICE}={chosen}: gl, cpu or hardware is needed{meant(chosen, AUTO_CHOICES)}")
    return chosen

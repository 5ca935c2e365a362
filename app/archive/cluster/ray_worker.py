"""The worker as an actor of Ray: does jobs on whichever node it was started."""

import contextlib
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl.egl import Egl, EglDevice

from .job_server import GPU_CHOICE, JobServer


class RayWorker(JobServer):
    """The actor. `run` has a thread of its own, always the same; `stop` another one."""

    def start(self, charge: tuple[Any, ...]) -> tuple[Any, ...]:
        """The same, and whether this node's Ray keeps its files to itself."""
        return (*super().start(charge), _note_on_folder())

    def chosen_gpu(self) -> str | None:
        """The one that Ray gave this worker, which it numbers as CUDA does by the place on the bus.

        None where Ray gave none, or OpenGL does not have it.
        """
        import ray

        given = ray.get_runtime_context().get_accelerator_ids().get("GPU", [])
        if not given:
            return None
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)  # by which EGL would number those that are left
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        try:
            found = device_of_gpu(Egl().devices(), str(given[0]))
        except DeviceError:
            return None
        if found is None:
            return None
        os.environ[GPU_CHOICE] = str(found.index)
        return found.text


def _note_on_folder() -> str | None:
    """What there is to say of the folder in which this node's Ray has its sockets, logs and spilled objects."""
    import ray

    node = getattr(getattr(ray, "_private", None), "worker", None)
    node = getattr(node, "_global_node", None)
    if node is None or not open_to_others(folder := Path(node.get_session_dir_path())):
        return None
    return f"all its users may change the files of its Ray, in '{folder}': SECURITY.md says how to start it otherwise"


def open_to_others(folder: Path) -> bool:
    """Whether any user of this machine may change what is in a folder: by its mode, and by those of folders above."""
    if sys.platform == "win32":
        return False
    with contextlib.suppress(OSError):
        modes = [each.stat().st_mode for each in (folder.resolve(), *folder.resolve().parents)]
        is_reached = all(mode & stat.S_IXOTH for mode in modes)
        return is_reached and bool(modes[0] & stat.S_IWOTH) and not modes[0] & stat.S_ISVTX
    return False


def device_of_gpu(devices: Sequence[EglDevice], gpu: str) -> EglDevice | None:
    """EGL's device for a GPU of Ray's: of the same number in CUDA; where none has such, the hardware of that place.

    None where there is none, or where the GPU has a name (GPU-..., MIG-...) and several could be meant.
    """
    hardware = [device for device in devices if not device.is_software]
    if not gpu.isdecimal():
        return hardware[0] if len(hardware) == 1 else None
    if any(device.cuda is not None for device in hardware):
        return next((device for device in hardware if device.cuda == int(gpu)), None)
    return hardware[int(gpu)] if int(gpu) < len(hardware) else None

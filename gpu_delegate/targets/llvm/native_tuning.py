"""The tuning for a kind of CPU, as a Device without OpenGL's limits."""

from dataclasses import replace

from ...device.device import SOFTWARE, Device
from ...device.limits import Limits
from .machine import CpuTarget

_ANY = 1 << 31  # of what OpenGL bounds and memory does not
_LIMITS = Limits(
    texture_buffer_texels=_ANY,
    texture_buffer_alignment_bytes=1,
    storage_alignment_bytes=1,
    storage_bindings=_ANY,
    storage_block_bytes=_ANY,
    uniform_alignment_bytes=1,
    shared_memory_bytes=_ANY,
)


def cpu_device(target: CpuTarget) -> Device:
    """The device that stands for a kind of CPU: a lane is a pixel, neighbors along x are in one vector.

    Sums of all slices of a tile are in registers: four vectors of lanes for each slice, at most half of them. A kernel
    has one window or contraction: what the next one reads is still in the cache, and a window alone takes a third of
    the time, one channel after the other. Vector nodes are computed once, not in front of each that needs them. Weights
    are read: literals in code are loads, too, and make it as long as the model. Maps of bytes are ints with four
    channels of a pixel; vectors are floats.
    """
    rows = 1 if target.registers >= 32 else 2  # which share weights that take a register
    slices = max(1, target.registers // 8 // rows)
    tuning = replace(
        SOFTWARE.tuning,
        joins_sums=False,
        held_slices=max(4, 2 * slices),
        rows=rows,
        window_rows=4,
        whole_slices=slices,
        thread_slices=slices,
        even_slices=True,
        simd_width=target.lanes,
        fills_lanes=False,
        bake_pixels=_ANY,
        bake_weights=0,
        loop_turns=_ANY,
        prologue_loads=-1,
        leaves_sums=False,
        stores_bytes=True,
        operation_compile_us=80.0,
    )
    return Device(_LIMITS, tuning, in_planes=True)

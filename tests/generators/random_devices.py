"""A device with another tuning, and tighter limits, at random."""

import numpy as np

from texelflow.gpu_delegate.device.device import Device


def random_device(device: Device, rng: np.random.Generator) -> Device:
    """The device with another tuning, and with limits that are no looser than its own."""

    def pick(*choices: int) -> int:
        return int(rng.choice(choices))

    limits = device.limits
    return device.with_limits(
        texture_buffer_texels=min(limits.texture_buffer_texels, pick(1 << 16, 1 << 16, 400, 30, 1)),
        shared_memory_bytes=min(limits.shared_memory_bytes, pick(1 << 15, 1 << 13)),
    ).with_tuning(
        held_slices=pick(1, 4, 8, 16, 64),
        min_fused_threads=pick(1, 1, 16, 64, 16384),
        rows=pick(1, 2, 4, 8),
        unrolled=pick(1, 64, 320, 1000),
        whole_slices=pick(0, 2, 8),
        group_width=pick(8, 32),
        group_threads=pick(32, 64, 128),
        bake_pixels=pick(1, 1, 60, 1 << 30),
        bake_weights=pick(0, 300, 3000),
        prologue_loads=pick(0, 2000, 40000, 1 << 40),
        leaves_sums=bool(pick(0, 1, 1)),
        sum_groups=pick(1, 4, 64),
        sum_threads=pick(64, 128, 256),
        split_k=pick(1, 3, 8) if device.tuning.split_k > 1 else 1,
        min_shared_threads=pick(1, 100, 4096),
    )

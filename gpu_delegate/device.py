"""What the decisions need to know of a machine: limits and tastes of its OpenGL driver, as plain numbers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """Limits are the driver's; tastes are measured (README, section on speed)."""

    software: bool = True  # the shader runs on the CPU: few threads, SIMD lanes along x
    max_texture_texels: int = 65536  # of a buffer texture; larger tensors are read through an SSBO
    offset_alignment_bytes: int = 256  # of a range binding, texture or SSBO
    max_storage_bytes: int = 1 << 27  # of one SSBO binding
    max_storage_bindings: int = 8
    max_texture_bindings: int = 16
    max_group_invocations: int = 1024
    max_groups: int = 65535  # along each side of a grid
    max_shared_bytes: int = 32768
    held_slices: int = 16  # vec4 values that one pixel may keep in registers
    min_fused_threads: int = 16  # a kernel that holds whole pixels needs so many threads to be worth it
    rows: int = 8  # pixels of one thread, one below the other: they share loads of weights and of neighbours
    unrolled: int = 320  # multiplications of vec4s that a thread's text may repeat; compilers take time for each
    whole_slices: int = 8  # a lone convolution makes so many output slices in one thread, more are shared out
    group_width: int = 32  # of a work-group, in threads
    group_threads: int = 64
    bake_pixels: int = 2048  # weights used by at least so many pixels may become literals ...
    bake_weights: int = 24000  # ... as long as the whole program has no more of them than this
    prologue_loads: int = 40000  # vec4 loads that a vector prologue may cost, summed over all work-groups


SOFTWARE = Device()
HARDWARE = Device(
    software=False,
    held_slices=8,
    rows=1,
    whole_slices=0,
    group_width=8,
    group_threads=64,
    min_fused_threads=16384,
    bake_pixels=1 << 62,
    bake_weights=0,
    prologue_loads=0,
)

"""What compilation needs to know of a device: limits of its OpenGL driver and tuning for it, as plain numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..model.layout import TEXEL_BYTES, Fetch
from .choices import UNMEASURED, Choices
from .limits import Limits
from .tile import WRITTEN_TAPS, Tile

COMPILE_BUDGET_S = 10.0  # of the CPU for all kernels of a program, if the driver has nothing in its cache


@dataclass(frozen=True)
class Tuning:
    """How kernels are made where the driver leaves a choice: measured (README, section on speed), here on llvmpipe."""

    held_slices: int = 16  # vec4 values that a kernel may hold in registers for one pixel
    min_fused_threads: int = 16  # the fewest threads for which a kernel that holds whole pixels pays off
    min_shared_threads: int = 4096  # the same where threads of a group share pixels, see plan/split_k.py
    joins_sums: bool = True  # whether a kernel may have several windows and contractions
    rows: int = 8  # pixels of one thread, in a column: they share loads of weights and of neighbors
    window_rows: int = 0  # the same where there are windows and no contractions; 0: as many as elsewhere
    unrolled: int = 320  # vec4 multiplications that a thread's source may contain; each takes compile time
    whole_slices: int = 8  # output slices that a lone convolution computes in one thread; more are distributed ...
    thread_slices: int = 4  # ... so that each thread computes this many
    even_slices: bool = False  # or half of it or more, where fewer would be computed twice
    group_width: int = 32  # of a work-group, in threads
    group_threads: int = 64
    simd_width: int = 8  # neighbors along x that are computed at once; 1: whole work-groups are
    fills_lanes: bool = True  # whether neighbors are slices where a map has one pixel alone
    wave_threads: int = 32  # of a work-group that a GPU runs at once: it runs whole waves
    sum_group_threads: int = 256  # of a work-group whose threads share sums: all devices but Arm's oldest allow it
    sum_texels: int = 1024  # of shared memory that such a group may take: all that OpenGL ES guarantees
    split_k: int = 1  # the most threads that share the terms of a sum, to the same end
    least_threads: int = 0  # that keep a GPU busy: where there would be fewer, each computes less
    window_slices: int = 0  # output slices that one thread computes behind a window; 0: as many as elsewhere
    window_repeats: int = 3  # times that a window may be computed: once for each thread that needs some output slices
    bake_pixels: int = 2048  # weights used by at least so many pixels may become literals ...
    bake_weights: int = 24000  # ... as long as the whole program has no more of them than this
    source_characters: int = 60000  # that a kernel's source may have, as estimated
    loop_turns: int = 65_000  # of all loops of a thread: Mesa's llvmpipe ends them after 65,536, and says nothing
    operation_compile_us: float = 340.0  # of the CPU, for each operation in a source (source_size.py)
    weights_fetch: Fetch = "texture"  # of kernels; where a device cannot have it, see bindings.settle_fetches
    varied_weights_fetch: Fetch | None = None  # the same where neighboring threads read different ones
    inputs_fetch: Fetch = "texture"
    unrolls: bool = True  # whether the driver's compiler may unroll loops
    written_taps: int = WRITTEN_TAPS  # of a window in a kernel's text; one of more is a loop ...
    written_deep_taps: int = WRITTEN_TAPS  # ... and one of more than these where it is summed over several slices
    loads_at_use: bool = False  # of kernels: right before what needs them; else all of a window first
    stores_bytes: bool = True  # whether whole numbers that fit are stored so (storages.py): a quarter, in the same time
    tries_packing: bool = False  # whether packHalf2x16 is used for halves where it rounds right
    prologue_loads: int = 8000  # vec4 loads that may be repeated, in all work-groups, for vectors; -1: has no prologue
    leaves_sums: bool = False  # kernels leave sums of maps that are reduced; a group shares vector work, weights count
    sum_groups: int = 64  # work-groups along x and y beyond which those of kernels with sums become larger ...
    sum_threads: int = 256  # ... up to this size

    def fetch_of_weights(self, is_varied: bool) -> Fetch:
        """How kernels read weights; whether neighboring threads read different ones, of vectors or parts of sums."""
        return (self.varied_weights_fetch if is_varied else None) or self.weights_fetch


@dataclass(frozen=True)
class Device:
    """What a graph is compiled for: `limits` are the driver's, `tuning` is ours, `choices` were measured on it."""

    limits: Limits
    tuning: Tuning
    choices: Choices = UNMEASURED
    in_planes: bool = False  # whether tensors are in planes (targets/llvm/planes.py), else in PHWC4

    @property
    def offset_alignment_bytes(self) -> int:
        """Of what kernels read and write: as the driver requires of all kinds of ranges, and at least a whole texel."""
        limits = self.limits
        ranges = limits.texture_buffer_alignment_bytes, limits.storage_alignment_bytes, limits.uniform_alignment_bytes
        return max(*ranges, TEXEL_BYTES)

    def fitted(self) -> "Device":
        """The same with a tuning whose work-groups and shared memory are within the limits."""
        tuning, most = self.tuning, self.limits.work_group_invocations
        return self.with_tuning(
            group_threads=min(tuning.group_threads, most),
            sum_group_threads=min(tuning.sum_group_threads, most),
            sum_texels=min(tuning.sum_texels, self.limits.shared_memory_bytes // TEXEL_BYTES),
        )

    def for_graph(self, signature: str) -> "Device":
        """The same with the settings of fusion that are fastest for a graph, if they are known."""
        known = self.choices.graphs.get(signature)
        return self.with_tuning(**known.settings) if known else self

    def tiles_of(self, signatures: Sequence[str]) -> dict[int, Tile]:
        """The chosen tiles among those of kernels with these signatures, by number."""
        known = self.choices.kernels
        return {number: known[name].tile for number, name in enumerate(signatures) if name in known}

    def with_limits(self, **changes: Any) -> "Device":
        """The same with other values for some fields of Limits. Raises TypeError for names that are none."""
        return replace(self, limits=replace(self.limits, **changes))

    def with_tuning(self, **changes: Any) -> "Device":
        """The same with other values for some fields of Tuning. Raises TypeError for names that are none."""
        return replace(self, tuning=replace(self.tuning, **changes))


# Devices to plan for where no driver is asked. OpenGL 4.6 and ES 3.1 guarantee storage blocks of this size.
SOFTWARE = Device(Limits(storage_block_bytes=1 << 27), Tuning())  # the shader runs on the CPU: few threads, SIMD
HARDWARE = SOFTWARE.with_tuning(
    held_slices=8,
    rows=1,
    whole_slices=0,
    group_width=8,
    group_threads=64,
    simd_width=1,
    min_fused_threads=16384,
    least_threads=8192,
    split_k=12,
    window_slices=6,
    window_repeats=1,
    bake_pixels=1 << 62,
    bake_weights=0,
    operation_compile_us=60.0,
    loads_at_use=True,
    loop_turns=1 << 31,
    prologue_loads=160_000,
    leaves_sums=True,
    tries_packing=True,
)

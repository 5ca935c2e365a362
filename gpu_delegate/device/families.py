"""Tells a GPU's family from its driver's names, and holds the tuning of each family.

Drivers of one vendor name their GPUs in many ways, and layers (ANGLE, Zink, D3D12, virgl, Parallels) put that name in
their own: so what tells a family is looked for anywhere in the renderer's name, then in the vendor's. A software
renderer is looked for first, since layers run on those, too.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from .device import HARDWARE, SOFTWARE, Device, Tuning

UNKNOWN = "hardware"

_RENDERERS = MappingProxyType(
    {
        "software": r"llvmpipe|softpipe|swrast|\bSWR\b|lavapipe|SwiftShader|Software Render|Software Raster|"
        r"Microsoft Basic Render|GDI Generic",
        "adreno-660": r"\bFD(?:635|64[34]|66\d|690|[78]\d\d)\b|Adreno\D*(?:(?:635|642L|64[34]|66\d|690|[78]\d\d)\b|"
        r"X\d-\d\d|[78]cx?\+? Gen 3)",
        "adreno": r"Adreno|\bFD\d{3}\b",
        "mali": r"\bMali|Immortalis|Panfrost",
        "videocore": r"\bV3D\b|\bVC4\b|VideoCore",
        "nvidia": r"NVIDIA|GeForce|Quadro|\bTegra\b|\bNVK\b|\bNV[0-9A-F]{2,3}\b",
        "amd": r"\bAMD\b|\bATI\b|Radeon|FirePro|Xclipse|\bRADV\b",
        "intel-xe2": r"\b(?:LNL|BMG|PTL|WCL)\b|\bArc\S* (?:1[34]0V|(?:Pro )?B\d{2,3})\b",
        "intel": r"\bIntel\b",
    }
)
_VENDORS = MappingProxyType(
    {
        "adreno": r"Qualcomm|freedreno",
        "mali": r"\bARM\b|Panfrost|\blima\b",
        "videocore": r"Broadcom",
        "nvidia": r"NVIDIA|nouveau",
        "amd": r"\bAMD\b|\bATI\b|Advanced Micro Devices",
        "intel": r"\bIntel\b",
    }
)

# All threads of a wave read the same weights: from a uniform block they come through a cache of constants or scalar
# registers, from a texture once for each thread. Inputs of four floats come from storage blocks in one message, where
# texture units fetch texel by texel. With nothing else changed, selfie takes 291 k cycles instead of 452 k by AMD's
# compiler (RADV, navi22, as if each loop had eight turns).
_BLOCKS = replace(HARDWARE.tuning, weights_fetch="uniform", inputs_fetch="storage")

# What differs is chosen by docs/gpu.md's figures over four networks.
TUNINGS: Mapping[str, Tuning] = MappingProxyType(
    {
        "software": SOFTWARE.tuning,
        # A window's kernel with six sums does not fit the registers of 16 threads, one with four does.
        "intel": replace(_BLOCKS, wave_threads=16, least_threads=16384, window_slices=4),
        # Lunar Lake, Battlemage and later: registers for 32 threads, which smaller work-groups would leave unused. What
        # all threads read alike comes from storage in one message: a sixth fewer instructions than from uniform blocks.
        "intel-xe2": replace(_BLOCKS, weights_fetch="storage", wave_threads=32, least_threads=16384, window_slices=4),
        # No sums in parts: compilers cannot know that a wave's threads are of one part, and give up scalar loads of
        # weights (latency of selfie 246 k with, 110 k without, though with fewer dispatches).
        "amd": replace(_BLOCKS, wave_threads=64, least_threads=32768, window_slices=4, split_k=1),
        # A dispatch costs a large card more than the weights of gates that its work-groups read again. Its cache of
        # constants gives different threads different weights one after the other: from storage selfie takes three
        # quarters of the time (docs/hardware.md).
        "nvidia": replace(
            _BLOCKS, varied_weights_fetch="storage", least_threads=65536, split_k=16, prologue_loads=600_000
        ),
        # Textures have a cache of their own there, and TensorFlow Lite reads them, too. With uniform blocks an Adreno
        # 618 spills 757 registers; with more sums of a thread, 193 in the first
        # kernel. packHalf2x16 takes a tenth more instructions than integers do.
        "adreno": replace(
            HARDWARE.tuning,
            held_slices=4,
            thread_slices=2,
            window_slices=4,
            wave_threads=64,
            tries_packing=False,
        ),
        # From the 660 on (a6xx_gen4 and a7xx of Mesa's freedreno, has_isam_v) a message fetches four floats of a block,
        # where the 618 sends four. A thread of the 660 has 32 registers of four floats, not 48: with the tuning above
        # 50 of 1,647 kernels of 30 models spill there, with this one none, for a fifth fewer instructions.
        "adreno-660": replace(_BLOCKS, wave_threads=64, window_slices=3, split_k=1),
        # Its shared memory is main memory: sums in parts spill (1 to 31 registers) and take more instructions.
        "mali": replace(_BLOCKS, wave_threads=16, window_slices=3, split_k=1),
        # The same, and eight cores of sixteen lanes are soon busy. Threads have as many slices each: with a branch
        # around loads Mesa's compiler came to no end.
        "videocore": replace(
            _BLOCKS,
            thread_slices=2,
            even_slices=True,
            window_slices=2,
            wave_threads=16,
            split_k=1,
            least_threads=1024,
            written_taps=24,  # with windows of 5x5 written out kernels spill, or the compiler comes to no end
            written_deep_taps=3,  # and with those of 2x2 and 3x3 in the loop over slices of a convolution's input
        ),
        UNKNOWN: HARDWARE.tuning,
    }
)


@dataclass(frozen=True)
class Family:
    """A key of TUNINGS, and a clause that says what a device was known by."""

    name: str
    reason: str


def family_of(vendor: str, renderer: str) -> Family:
    """The family of the device with these GL_VENDOR and GL_RENDERER; `hardware` if nothing tells."""
    for what, text, patterns in (("renderer", renderer, _RENDERERS), ("vendor", vendor, _VENDORS)):
        for name, pattern in patterns.items():
            if found := re.search(pattern, text, re.I):
                return Family(name, f'"{found[0]}" is in the name of its {what}')
    return Family(UNKNOWN, "nothing in its names tells a family that is known")


def device_like(family: str) -> Device:
    """A device of a family that is not here, with OpenGL's least limits. Raises KeyError for a name that is none."""
    return replace(SOFTWARE, tuning=TUNINGS[family])

"""The limits of a device, and the least of them that the engine relies on."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..base.errors import DeviceError

# Of OpenGL, with float16_t, f16vec4 and unpackFloat2x16.
HALF_EXTENSIONS = ("GL_AMD_gpu_shader_half_float", "GL_NV_gpu_shader5")


@dataclass(frozen=True)
class Limits:
    """What the driver allows, by default what OpenGL 4.3 guarantees; sizes are (x, y, z)."""

    texture_buffer_texels: int = 65536  # 0 where there are no buffer textures, as OpenGL ES 3.1 allows
    texture_buffer_alignment_bytes: int = 256
    storage_alignment_bytes: int = 256
    storage_bindings: int = 8  # of one compute shader
    fragment_storage_bindings: int = 8  # of one fragment shader; OpenGL ES 3.1 allows 0
    storage_block_bytes: int = 1 << 24
    uniform_block_bytes: int = 16384
    uniform_alignment_bytes: int = 256
    uniform_blocks: int = 12  # of one compute shader
    work_group_count: tuple[int, int, int] = (65535, 65535, 65535)
    work_group_size: tuple[int, int, int] = (1024, 1024, 64)
    work_group_invocations: int = 1024
    shared_memory_bytes: int = 32768
    texture_size: int = 16384  # largest width and height of a 2-D texture
    compute_textures: int = 16  # texture image units of one compute shader
    image_units: int = 8
    viewport_size: tuple[int, int] = (16384, 16384)  # (width, height)
    half_arithmetic: str = ""  # what gives it types of halves: an extension, or OpenGL ES's mediump
    packs_halves: bool = False  # its packHalf2x16 may be used: it rounds to the nearest (half_packing.py)


# What OpenGL ES 3.1 guarantees, where that is less.
ES_LIMITS = Limits(
    texture_buffer_texels=0,
    storage_bindings=4,
    fragment_storage_bindings=0,
    storage_block_bytes=1 << 27,
    work_group_size=(128, 128, 64),
    work_group_invocations=128,
    shared_memory_bytes=16384,
    texture_size=2048,
    image_units=4,
    viewport_size=(2048, 2048),
)
_RELIED_ON = (
    "texture_buffer_texels", "storage_bindings", "storage_block_bytes", "work_group_invocations",
    "shared_memory_bytes", "compute_textures",
)  # fmt: skip


def needed_limits(is_es: bool) -> Mapping[str, int]:
    """What the engine relies on, and how much of it at least; a driver that offers less is not conformant."""
    guaranteed = ES_LIMITS if is_es else Limits()
    return {name: getattr(guaranteed, name) for name in _RELIED_ON}


def check_limits(limits: Limits, renderer: str, is_es: bool = False) -> None:
    """Raise DeviceError if a device offers less than OpenGL 4.3, or OpenGL ES 3.1, guarantees."""
    for name, needed in needed_limits(is_es).items():
        found = getattr(limits, name)
        if found < needed:
            what = name.replace("_", " ")
            raise DeviceError(f"{renderer}: {what} is {found}, at least {needed} is needed; use --backend cpu")

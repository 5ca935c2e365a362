"""The GPUs whose compilers run without them: name, family, and the environment that a driver needs.

Mesa's drm-shim libraries give a process a render node that does not exist. Drivers compile for it, and nothing is run.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Literal

Interface = Literal["gl", "gles", "vulkan"]

# What makes drivers report figures for each shader, synchronously, as messages of KHR_debug.
_SPEAK = {
    "FD_MESA_DEBUG": "shaderdb",
    "MESA_SHADER_CACHE_DISABLE": "1",
    "mesa_glthread": "false",
    "GALLIUM_THREAD": "0",  # a threaded context drops messages
}
# For a driver whose OpenGL is older: its compiler takes the kernels all the same.
_FORCED = {
    "MESA_GL_VERSION_OVERRIDE": "4.3",
    "MESA_GLSL_VERSION_OVERRIDE": "430",
    "MESA_EXTENSION_OVERRIDE": "+GL_ARB_compute_shader +GL_ARB_shader_storage_buffer_object"
    " +GL_ARB_texture_buffer_range +GL_ARB_shading_language_420pack +GL_ARB_shader_image_load_store",
}
# The file that announces RADV, AMD's Vulkan driver, to Vulkan's loader; none where it is not installed.
RADV_ICD = next((str(path) for path in Path("/usr/share/vulkan/icd.d").glob("radeon_icd*.json")), "")


@dataclass(frozen=True)
class Platform:
    """A GPU, and how its compiler is reached."""

    words: str
    family: str  # of tunings
    shim: str  # the library that fakes its device, "" for a driver that fakes one itself
    environment: Mapping[str, str] = field(default_factory=dict)
    api: Interface = "gl"
    full_width: int = 0  # threads of a SIMD thread, where a shader with too many registers gets fewer
    listed: bool = False  # it prints machine code, too, which takes it longer than to compile


def _intel(words: str, name: str, full_width: int = 16, listed: bool = False, family: str = "intel") -> Platform:
    printing = {"INTEL_DEBUG": "cs"} if listed else {}
    environment = {"INTEL_STUB_GPU_PLATFORM": name, **printing}
    return Platform(words, family, "intel_noop", environment, full_width=full_width, listed=listed)


def _amd(words: str, name: str, aco: bool = False) -> Platform:
    chosen = {"AMD_DEBUG": "useaco"} if aco else {}
    return Platform(words, "amd", "amdgpu_noop", {"AMDGPU_GPU_ID": name, **chosen})


def _adreno(name: str, family: str = "adreno-660") -> Platform:
    return Platform(f"Qualcomm Adreno {name}", family, "freedreno_noop", {"FD_GPU_ID": name})


def _mali(words: str, name: str) -> Platform:
    return Platform(f"Arm Mali {words}", "mali", "panfrost_noop", {"PAN_GPU_ID": name}, "gles")


PLATFORMS: Mapping[str, Platform] = MappingProxyType(
    {
        "skl": _intel("Intel Gen9 Skylake GT2", "skl"),
        "icl": _intel("Intel Gen11 Ice Lake", "icl"),
        "tgl": _intel("Intel Gen12 Tiger Lake (Xe LP)", "tgl", listed=True),
        "adl": _intel("Intel Gen12 Alder Lake", "adl"),
        "dg2": _intel("Intel Gen12.5 Arc A770", "dg2"),
        "mtl": _intel("Intel Gen12.5 Meteor Lake", "mtl"),
        "lnl": _intel("Intel Xe2 Lunar Lake", "lnl", full_width=32, listed=True, family="intel-xe2"),
        "polaris": _amd("AMD gfx8 Polaris 10", "polaris10"),
        "raven": _amd("AMD gfx9 Raven (Ryzen 2000)", "raven"),
        "renoir": _amd("AMD gfx9 Renoir (Ryzen 4000)", "renoir"),
        "navi10": _amd("AMD gfx10.1 Navi 10, LLVM", "navi10"),
        "vangogh": _amd("AMD gfx10.3 Van Gogh, LLVM", "vangogh"),
        "navi31": _amd("AMD gfx11 Navi 31, LLVM", "navi31"),
        "navi10-aco": _amd("AMD gfx10.1 Navi 10, ACO", "navi10", aco=True),
        "vangogh-aco": _amd("AMD gfx10.3 Van Gogh, ACO", "vangogh", aco=True),
        "navi31-aco": _amd("AMD gfx11 Navi 31, ACO", "navi31", aco=True),
        "gfx1150-aco": _amd("AMD gfx11.5 Strix Point, ACO", "gfx1150", aco=True),
        "a618": _adreno("618", "adreno"),
        "a660": _adreno("660"),
        "a740": _adreno("740"),
        "g52": _mali("G52 (Bifrost)", "7212"),
        "g57": _mali("G57 (Valhall)", "9093"),
        "g610": _mali("G610 (Valhall, CSF)", "a867"),
        "v3d42": Platform("Broadcom VideoCore VI (Raspberry Pi 4)", "videocore", "v3d_noop", _FORCED),
        "radv-navi22": Platform(
            "AMD gfx10.3 Navi 22, RADV", "amd", "",
            {"RADV_FORCE_FAMILY": "navi22", "VK_ICD_FILENAMES": RADV_ICD, "VK_DRIVER_FILES": RADV_ICD}, "vulkan",
        ),
    }
)  # fmt: skip


def environment_of(platform: Platform, prefix: Path | None, folder: Path) -> dict[str, str]:
    """What a process needs in its environment to see this GPU; a file for libEGL is written to `folder`.

    `prefix` is where the fake devices are installed. Raises OSError.
    """
    if not platform.shim or prefix is None:
        return {**_SPEAK, **platform.environment}
    announced = folder / "egl_vendor.json"
    library = {"library_path": f"{prefix}/lib/libEGL_mesa.so.0"}
    announced.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": library}))
    return {
        **_SPEAK,
        "LD_LIBRARY_PATH": f"{prefix}/lib",
        "LD_PRELOAD": f"{prefix}/lib/lib{platform.shim}_drm_shim.so",
        "__EGL_VENDOR_LIBRARY_FILENAMES": str(announced),
        "GBM_BACKENDS_PATH": f"{prefix}/lib/gbm",
        **platform.environment,
    }

"""Windows on a laptop's weak GPU: who is told of the strong one, and what chooses it."""

from pathlib import Path

import pytest

from texelflow.app.window.gpus import STRONG, WEAK, SystemGpu, news_of_gpu, offload_to, strength_of, system_gpus
from texelflow.gpu_delegate.targets.gl.egl import EglDevice
from texelflow.gpu_delegate.targets.gl.native_context import TriedDevice

INTEL = ("Intel", "Mesa Intel(R) UHD Graphics 620 (KBL GT2)")
NVIDIA = SystemGpu("NVIDIA, 0000:01:00.0", STRONG, "nvidia", "0000:01:00.0")
RADEON = SystemGpu("AMD, 0000:03:00.0", STRONG, "amdgpu", "0000:03:00.0")
OWN = SystemGpu("Intel, 0000:00:02.0", WEAK, "i915", "0000:00:02.0")


@pytest.mark.parametrize(
    ("vendor", "renderer", "strength"),
    [
        (*INTEL, WEAK),
        ("Intel", "Mesa Intel(R) Arc(tm) A770 Graphics (DG2)", STRONG),
        ("AMD", "AMD Radeon Graphics (radeonsi, renoir, LLVM 15.0.6, DRM 3.49)", WEAK),
        ("AMD", "AMD Radeon RX 6700 XT (radeonsi, navi22)", STRONG),
        ("NVIDIA Corporation", "NVIDIA GeForce RTX 4060 Laptop GPU/PCIe/SSE2", STRONG),
        ("Mesa/X.org", "llvmpipe (LLVM 15.0.6, 256 bits)", 0),
        ("Broadcom", "V3D 4.2.14.0", None),
    ],
)
def test_drivers_names_tell(vendor: str, renderer: str, strength: int | None) -> None:
    assert strength_of(vendor, renderer) == strength


@pytest.mark.parametrize(
    ("gpus", "environment", "platform", "how"),
    [
        ((OWN, NVIDIA), {}, "linux", "--gpu nvidia chooses it, or __NV_PRIME_RENDER_OFFLOAD=1 __GLX_VENDOR_LIBRARY_NA"),
        ((OWN, RADEON), {}, "linux", "--gpu with its number of texelflow doctor chooses it, or DRI_PRIME=1"),
        ((SystemGpu("NVIDIA GeForce MX150", STRONG),), {}, "win32", "Windows' settings, System > Display > Graphics"),
        ((OWN,), {}, "linux", ""),
        ((), {}, "darwin", ""),
        ((OWN, RADEON), {"DRI_PRIME": "1"}, "linux", ""),
    ],
)
def test_one_line_for_who_can_choose_better(
    gpus: tuple[SystemGpu, ...], environment: dict[str, str], platform: str, how: str
) -> None:
    line = news_of_gpu(*INTEL, None, gpus, environment, platform)
    assert how in line
    assert bool(line) == bool(how)
    assert "\n" not in line
    assert news_of_gpu("NVIDIA Corporation", "GeForce", None, gpus, environment, platform) == ""
    assert news_of_gpu("Broadcom", "V3D 4.2.14.0", None, gpus, environment, platform) == ""


def test_a_choice_that_the_display_does_not_follow_is_told() -> None:
    chosen = TriedDevice(EglDevice(1), "GeForce", "NVIDIA Corporation")
    assert news_of_gpu(*INTEL, chosen, (OWN, NVIDIA), {}, "linux").endswith("(KBL GT2), not by GeForce")
    assert news_of_gpu("NVIDIA Corporation", "GeForce", chosen, (OWN, NVIDIA), {}, "linux") == ""


def test_drivers_are_told_by_their_own_variables() -> None:
    assert offload_to(False, NVIDIA)["__GLX_VENDOR_LIBRARY_NAME"] == "nvidia"
    assert offload_to(False, RADEON) == {"DRI_PRIME": "pci-0000_03_00_0"}
    assert offload_to(True, None) == {"LIBGL_ALWAYS_SOFTWARE": "1"}
    assert offload_to(False, None) == {}


def test_the_system_tells_of_its_gpus(tmp_path: Path) -> None:
    def add(node: str, slot: str, vendor: str, driver: str, memory_bytes: int = 0) -> None:
        device, kernel = tmp_path / "devices" / slot, tmp_path / "drivers" / driver
        device.mkdir(parents=True)
        kernel.mkdir(parents=True, exist_ok=True)
        (device / "vendor").write_text(f"{vendor}\n")
        (device / "driver").symlink_to(kernel)
        if memory_bytes:
            (device / "mem_info_vram_total").write_text(f"{memory_bytes}\n")
        (tmp_path / "class" / "drm" / node).mkdir(parents=True)
        (tmp_path / "class" / "drm" / node / "device").symlink_to(device)

    add("renderD128", "0000:00:02.0", "0x8086", "i915")
    add("renderD129", "0000:01:00.0", "0x10de", "nvidia")
    add("renderD130", "0000:03:00.0", "0x1002", "amdgpu", 8 << 30)
    add("renderD131", "0000:05:00.0", "0x1002", "amdgpu", 512 << 20)
    (tmp_path / "class" / "drm" / "renderD132").mkdir()  # of a board without a PCI bus
    own = SystemGpu("AMD, 0000:05:00.0", WEAK, "amdgpu", "0000:05:00.0")
    assert system_gpus(tmp_path) == (OWN, NVIDIA, RADEON, own)
    assert system_gpus(tmp_path / "nothing") == ()

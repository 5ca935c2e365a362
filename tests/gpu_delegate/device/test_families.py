"""Families of GPUs: recognized by the names that drivers give, and shown by `inspect`."""

import json
from dataclasses import fields
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from tests.helpers.engine import on_cpu, on_gpu, worst
from tests.helpers.markers import exhaustive
from tests.model_files.sketch import Sketch
from texelflow.app.cli import main
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device, Tuning
from texelflow.gpu_delegate.device.families import TUNINGS, UNKNOWN, device_like, family_of
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

# (family, GL_VENDOR, GL_RENDERER), as users of Mesa, of vendors' drivers, of ANGLE and of macOS have reported them
NAMES = [
    ("software", "Mesa", "llvmpipe (LLVM 15.0.6, 256 bits)"),
    ("software", "VMware, Inc.", "llvmpipe (LLVM 12.0.0, 256 bits)"),
    ("software", "Mesa", "softpipe"),
    ("software", "Intel Corporation", "SWR (LLVM 10.0.0, 256 bits)"),
    ("software", "Mesa", "zink Vulkan 1.3(llvmpipe (LLVM 15.0.6, 256 bits))"),
    ("software", "Mesa", "virgl (LLVMPIPE (LLVM 15.0.7, 256 bits))"),
    ("software", "Apple Inc.", "Apple Software Renderer"),
    ("software", "Microsoft Corporation", "GDI Generic"),
    ("software", "Microsoft Corporation", "D3D12 (Microsoft Basic Render Driver)"),
    (
        "software",
        "Google Inc. (Google)",
        "ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)",
    ),
    ("intel", "Intel", "Mesa Intel(R) UHD Graphics 620 (KBL GT2)"),
    ("intel", "Intel", "Mesa Intel(R) Iris(R) Xe Graphics (TGL GT2)"),
    ("intel", "Intel", "Mesa Intel(R) Arc(tm) A770 Graphics (DG2)"),
    ("intel", "Intel Open Source Technology Center", "Mesa DRI Intel(R) HD Graphics 520 (Skylake GT2) "),
    ("intel", "Intel Inc.", "Intel HD Graphics 4000 OpenGL Engine"),
    ("intel", "Intel", "Intel(R) Iris(R) Xe Graphics"),
    ("intel", "Microsoft Corporation", "D3D12 (Intel(R) UHD Graphics 770)"),
    (
        "intel",
        "Google Inc. (Intel)",
        "ANGLE (Intel, Intel(R) UHD Graphics 620 (0x00005917) Direct3D11 vs_5_0 ps_5_0, D3D11)",
    ),
    ("intel", "Intel", "Intel(R) Arc(TM) 140T GPU (16GB)"),
    ("intel-xe2", "Intel", "Mesa Intel(R) Graphics (LNL)"),
    ("intel-xe2", "Intel", "Mesa Intel(R) Arc(tm) Graphics (PTL)"),
    ("intel-xe2", "Intel", "Mesa Intel(R) Arc(tm) B580 Graphics (BMG G21)"),
    ("intel-xe2", "Intel", "Intel(R) Arc(TM) B580 Graphics"),
    ("intel-xe2", "Intel", "Intel(R) Arc(TM) 140V GPU (16GB)"),
    ("intel-xe2", "Microsoft Corporation", "D3D12 (Intel(R) Arc(TM) Pro B50 Graphics)"),
    ("amd", "AMD", "AMD Radeon RX 6700 XT (radeonsi, navi22, LLVM 15.0.6, DRM 3.49, 6.1.0-13-amd64)"),
    ("amd", "AMD", "AMD Custom GPU 0405 (radeonsi, vangogh, LLVM 15.0.7, DRM 3.54, 6.1.52-valve16)"),
    ("amd", "X.Org", "AMD RAVEN (DRM 3.38.0, 5.8.0-7630-generic, LLVM 11.0.0)"),
    ("amd", "X.Org", "AMD Radeon (TM) RX 480 Graphics (POLARIS10, DRM 3.35.0, 5.4.0-70-generic, LLVM 10.0.0)"),
    ("amd", "ATI Technologies Inc.", "AMD Radeon Pro 5500M OpenGL Engine"),
    ("amd", "ATI Technologies Inc.", "Radeon RX 580 Series"),
    ("amd", "Parallels and ATI Technologies Inc.", "Parallels using AMD Radeon Pro 5300M OpenGL Engine"),
    ("amd", "Mesa", "zink Vulkan 1.3(AMD Radeon RX 7900 XTX (RADV NAVI31))"),
    ("amd", "Microsoft Corporation", "D3D12 (AMD Radeon(TM) Vega 8 Graphics)"),
    ("amd", "Samsung Electronics Co., Ltd.", "ANGLE (Samsung Xclipse 920) on Vulkan 1.1.179"),
    ("nvidia", "NVIDIA Corporation", "NVIDIA GeForce RTX 3080/PCIe/SSE2"),
    ("nvidia", "NVIDIA Corporation", "Quadro P2000/PCIe/SSE2"),
    ("nvidia", "NVIDIA Corporation", "Tesla T4/PCIe/SSE2"),
    ("nvidia", "NVIDIA Corporation", "NVIDIA H200/PCIe/SSE2"),
    ("nvidia", "NVIDIA Corporation", "NVIDIA Tegra X1 (nvgpu)/integrated"),
    ("nvidia", "nouveau", "NV137"),
    ("nvidia", "Mesa", "NV124"),
    ("nvidia", "Mesa", "zink Vulkan 1.3(NVIDIA GeForce RTX 4090 (NVK AD102))"),
    ("nvidia", "Microsoft Corporation", "D3D12 (NVIDIA GeForce GTX 1650 with Max-Q Design)"),
    (
        "nvidia",
        "Google Inc. (NVIDIA)",
        "ANGLE (NVIDIA, NVIDIA GeForce GTX 1650 (0x00001F82) Direct3D11 vs_5_0 ps_5_0, D3D11)",
    ),
    ("adreno", "Qualcomm", "Adreno (TM) 640"),
    ("adreno", "freedreno", "FD618"),
    ("adreno", "Qualcomm", "Adreno (TM) 540"),
    ("adreno", "Qualcomm", "Adreno (TM) 650"),
    ("adreno", "freedreno", "FD680"),
    ("adreno", "Qualcomm", "D3D12 (Qualcomm(R) Adreno(TM) 8cx Gen 2)"),
    ("adreno-660", "freedreno", "FD660"),
    ("adreno-660", "freedreno", "FD740"),
    ("adreno-660", "freedreno", "FD643"),
    ("adreno-660", "Qualcomm", "Adreno (TM) 642L"),
    ("adreno-660", "Qualcomm", "Adreno (TM) 730"),
    ("adreno-660", "freedreno", "Adreno 7c+ Gen 3"),
    ("adreno-660", "freedreno", "Adreno X1-85"),
    ("adreno-660", "Qualcomm", "D3D12 (Qualcomm(R) Adreno(TM) 8cx Gen 3)"),
    ("adreno", "Mesa", "zink Vulkan 1.3(Turnip Adreno (TM) 619 (MESA_TURNIP))"),
    ("adreno-660", "Google Inc. (Qualcomm)", "ANGLE (Qualcomm, Adreno (TM) 830, OpenGL ES 3.2 V@0700.59)"),
    ("mali", "ARM", "Mali-G78"),
    ("mali", "ARM", "Mali-G715-Immortalis MC11"),
    ("mali", "Panfrost", "Mali-G52 (Panfrost)"),
    ("mali", "Mesa", "Mali-G610 (Panfrost)"),
    ("mali", "lima", "Mali400"),
    ("mali", "Google Inc. (ARM)", "ANGLE (ARM, Mali-G78, OpenGL ES 3.2)"),
    ("videocore", "Broadcom", "V3D 4.2"),
    ("videocore", "Broadcom", "V3D 7.1.7.0"),
    ("videocore", "Broadcom", "VC4 V3D 2.1"),
    ("videocore", "Broadcom", "VideoCore IV HW"),
    ("hardware", "Mesa", "Apple M1 (G13G B1)"),
    ("hardware", "Apple", "Apple M2 Pro"),
    ("hardware", "Imagination Technologies", "PowerVR Rogue GE8320"),
    ("hardware", "etnaviv", "Vivante GC7000 rev 6214"),
    ("hardware", "VMware, Inc.", "SVGA3D; build: RELEASE;  LLVM;"),
    ("hardware", "Red Hat", "virgl"),
    ("hardware", "Google Inc. (Apple)", "ANGLE (Apple, ANGLE Metal Renderer: Apple M1, Unspecified Version)"),
    ("hardware", "", ""),
]


@pytest.mark.parametrize(("family", "vendor", "renderer"), NAMES)
def test_devices_are_known_by_what_their_drivers_call_them(family: str, vendor: str, renderer: str) -> None:
    found = family_of(vendor, renderer)
    assert found.name == family
    quoted = found.reason.split('"')[1] if '"' in found.reason else ""
    assert quoted in renderer or quoted in vendor
    assert (found.name == UNKNOWN) == (not quoted)


def test_a_vendor_tells_what_a_renderer_does_not() -> None:
    names = ("Qualcomm", "ARM", "Broadcom", "NVIDIA Corporation", "Advanced Micro Devices, Inc.", "Intel Inc.")
    found = [family_of(vendor, "Graphics") for vendor in names]
    assert [family.name for family in found] == ["adreno", "mali", "videocore", "nvidia", "amd", "intel"]
    assert found[1].reason == '"ARM" is in the name of its vendor'


@given(st.text(), st.text())
def test_whatever_a_driver_says_there_is_a_tuning(vendor: str, renderer: str) -> None:
    assert family_of(vendor, renderer).name in TUNINGS


def test_every_family_has_a_tuning() -> None:
    assert {family for family, *_ in NAMES} == {*TUNINGS}
    assert device_like("software") == SOFTWARE
    assert device_like(UNKNOWN) == HARDWARE
    for tuning in TUNINGS.values():
        assert [field.name for field in fields(tuning)] == [field.name for field in fields(Tuning)]


@pytest.fixture
def model_path(tmp_path: Path) -> str:
    m = Sketch(0)
    m.output(m.conv(m.image(9, 7, 5), 24))
    path = tmp_path / "model.tflite"
    path.write_bytes(m.build())
    return str(path)


def test_inspect_shows_the_kernels_of_another_family(model_path: str, capsys: pytest.CaptureFixture[str]) -> None:
    machines = {}
    for family in TUNINGS:
        assert main(["inspect", model_path, "--tuning", family, "--json"]) == 0
        machines[family] = json.loads(capsys.readouterr().out)["machine"]
    assert all(f"the family {family} " in machine for family, machine in machines.items())


def test_inspect_says_why_this_device_is_of_its_family(
    model_path: str, capsys: pytest.CaptureFixture[str], context: Context
) -> None:
    assert main(["inspect", model_path, "--no-peaks"]) == 0
    assert f"tuned as {context.family.name}: {context.family.reason}" in capsys.readouterr().out


@exhaustive
def test_kernels_of_every_family_agree_with_tensorflow_lite(context: Context) -> None:
    """At odd sizes: windows and sums, some shared by threads, and gates, wherever weights and inputs come from."""
    m = Sketch(0)
    x = m.depthwise(m.image(5, 7, 13), activation="RELU")
    m.output(m.conv(m.binary("MUL", x, m.unary("LOGISTIC", m.conv(m.mean(x), 13))), 10))
    values = [np.random.default_rng(1).uniform(-1, 1, m.shape(0)).astype(np.float32)]
    wanted = on_cpu(m.build(), values)
    for family, tuning in TUNINGS.items():
        compiled = compile_graph(read_model(m.build()), Device(context.limits, tuning))
        assert worst(on_gpu(context, compiled, values), wanted) < 1e-5, family

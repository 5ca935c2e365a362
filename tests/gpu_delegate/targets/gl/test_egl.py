"""EGL's devices and contexts without windows, and the reasons why a device gives none."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.broken_egl import NODE, broken_first, needs_compiler
from tests.helpers.waiting import PATIENCE_S
from texelflow.app.verbs.doctor import diagnoses
from texelflow.app.verbs.doctor.doctor import egl_devices, probe
from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.device_failures import failure_from
from texelflow.gpu_delegate.targets.gl.egl import Api, Egl, EglContext, EglDevice, EglDisplay, context_attributes
from texelflow.gpu_delegate.targets.gl.library import CurrentContext
from texelflow.gpu_delegate.targets.gl.native_context import TriedDevice, in_order

pytestmark = pytest.mark.gl

MAJOR, MINOR, PROFILE, RESET, RESET_EXT, PURGE = 0x3098, 0x30FB, 0x30FD, 0x31BD, 0x3138, 0x334C
CREATE, ROBUST = "EGL_KHR_create_context", "EGL_EXT_create_context_robustness"
INTEL, NVIDIA = EglDevice(0, 1, ("/dev/dri/renderD128",)), EglDevice(1, 2, ("NVIDIA GPU",))
SOFTWARE = EglDevice(2, 3, (), is_software=True)


@pytest.fixture
def egl(context: Context) -> Iterator[Egl]:
    yield Egl()
    context.make_current()


@pytest.fixture
def display(egl: Egl) -> EglDisplay:
    return egl.display(egl.devices()[-1])


class TestContexts:
    @pytest.mark.parametrize(("api", "version", "begin"), [("gl", (4, 3), "4."), ("gles", (3, 1), "OpenGL ES 3.")])
    @pytest.mark.parametrize("surfaceless", [True, False])
    def test_both_apis_with_and_without_a_surface(
        self, egl: Egl, display: EglDisplay, api: Api, version: tuple[int, int], begin: str, surfaceless: bool
    ) -> None:
        lacking = frozenset() if surfaceless else {"EGL_KHR_surfaceless_context"}
        opened = EglContext(egl, replace(display, extensions=display.extensions - lacking), api, version)
        load = opened.load_opengl_function
        assert opengl.text_of(load, opengl.VERSION).startswith(begin)
        assert bool(opened._surface) != surfaceless
        assert load("glDispatchCompute")
        opened.release()
        with pytest.raises(DeviceError, match="no OpenGL context is current"):
            CurrentContext()

    def test_one_within_another(self, egl: Egl, display: EglDisplay) -> None:
        outer, inner = (EglContext(egl, display, api, (3, 1)) for api in ("gl", "gles"))
        outer.make_current()
        with inner:
            assert opengl.text_of(inner.load_opengl_function, opengl.VERSION).startswith("OpenGL ES")
        assert not opengl.text_of(outer.load_opengl_function, opengl.VERSION).startswith("OpenGL ES")
        inner.release()  # the other one stays current
        assert CurrentContext().is_current()
        outer.release()

    def test_errors_have_names(self, egl: Egl, display: EglDisplay) -> None:
        with pytest.raises(DeviceError, match=r"^eglCreateContext: EGL_BAD_MATCH$"):
            EglContext(egl, display, "gl", (9, 9))

    @pytest.mark.parametrize(
        ("api", "extensions", "ways"),
        [
            ("gl", {CREATE}, [{MAJOR: 4, MINOR: 3, PROFILE: 1, RESET: 0x31BF}, {MAJOR: 4, MINOR: 3, PROFILE: 1}]),
            ("gl", set(), [{MAJOR: 4}]),
            ("gles", {CREATE, ROBUST}, [{MAJOR: 4, MINOR: 3, RESET_EXT: 0x31BF}, {MAJOR: 4, MINOR: 3}]),
            ("gles", {CREATE}, [{MAJOR: 4, MINOR: 3}]),
            (
                "gl",
                {CREATE, "EGL_NV_robustness_video_memory_purge"},
                [
                    {MAJOR: 4, MINOR: 3, PROFILE: 1, RESET: 0x31BF, PURGE: 1},
                    {MAJOR: 4, MINOR: 3, PROFILE: 1, RESET: 0x31BF},
                    {MAJOR: 4, MINOR: 3, PROFILE: 1},
                ],
            ),
        ],
    )
    def test_asks_for_all_that_a_driver_may_have(
        self, api: Api, extensions: set[str], ways: list[dict[int, int]]
    ) -> None:
        assert [dict(way) for way in context_attributes(api, (4, 3), frozenset(extensions))] == ways


class TestChoice:
    @pytest.mark.parametrize(
        ("wanted", "order"), [("", [0, 1, 2]), ("nvidia", [0, 1, 2]), ("1", [1]), ("2", [2]), ("123456", [0, 1, 2])]
    )
    def test_hardware_comes_first(self, wanted: str, order: list[int]) -> None:
        assert [device.index for device in in_order([INTEL, NVIDIA, SOFTWARE], wanted)] == order
        assert [device.index for device in in_order([SOFTWARE, INTEL], "")] == [0, 2]

    def test_devices_are_known_by_parts_of_their_names(self) -> None:
        intel = TriedDevice(INTEL, "Mesa Intel(R) UHD", "Intel")
        assert all(map(intel.matches, ["intel", "uhd", "renderD128", ""]))
        assert not intel.matches("nvidia")
        assert TriedDevice(INTEL, "llvmpipe (LLVM 15)", "Mesa").is_software

    def test_what_to_do_is_told(self) -> None:
        barred = failure_from(INTEL, "eglInitialize: EGL_NOT_INITIALIZED", "render", False)
        assert barred.why == "no rights on /dev/dri/renderD128"
        assert "usermod -aG render" in barred.advice
        assert "module" in failure_from(NVIDIA, "eglInitialize: EGL_NOT_INITIALIZED", None, False).advice
        assert "module" not in failure_from(NVIDIA, "eglInitialize: EGL_NOT_INITIALIZED", None, True).advice


OPEN = """
from texelflow.gpu_delegate.targets.gl.context import open_context
from texelflow.gpu_delegate.base.errors import DeviceError
for device in ({devices}):
    try:
        with open_context(device=device) as context:
            print(context.device.device.index, context.renderer)
    except DeviceError as error:
        print(error)
"""


@needs_compiler
class TestBrokenDevice:
    @pytest.mark.usefixtures("llvmpipe")
    def test_the_first_that_works_is_taken(self, tmp_path: Path) -> None:
        """Where a GPU comes first whose driver does not start, as NVIDIA's without its kernel module."""
        program = OPEN.format(devices=f"'', '0', {NODE!r}, 'llvmpipe'")
        environment = {**os.environ, **broken_first(tmp_path)}
        found = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        ).stdout.splitlines()
        assert found[0].startswith("1 llvmpipe")
        assert found[1].startswith("no OpenGL: eglInitialize: EGL_NOT_INITIALIZED; install ")
        assert found[2].startswith(f"no GPU is called {NODE}: there is 1 llvmpipe")
        assert found[3].startswith("1 llvmpipe")

    def test_doctor_tells_of_each(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in broken_first(tmp_path).items():
            monkeypatch.setenv(name, value)
        rows = diagnoses.egl(egl_devices(probe("opengl")), {})
        assert [(row.name, row.state) for row in rows] == [("device 0", "warn"), ("device 1", "ok")]
        assert rows[0].found == f"{NODE}: eglInitialize: EGL_NOT_INITIALIZED"
        assert rows[1].found.endswith("(taken)")

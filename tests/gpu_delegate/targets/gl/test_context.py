"""The context on this machine's real OpenGL: limits, errors in one line, and counted read-backs."""

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import resources

import moderngl
import numpy as np
import pytest

from tests.helpers.waiting import PATIENCE_S
from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.device.limits import check_limits
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context, compile_compute, open_context
from texelflow.gpu_delegate.targets.glsl.shader import explain_log, load

pytestmark = pytest.mark.gl


@pytest.fixture(scope="module")
def _module_context() -> Iterator[Context]:
    with open_context() as context:
        yield context


@pytest.fixture
def gl_context(_module_context: Context) -> Context:
    _module_context.make_current()  # tests open others
    return _module_context


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


OPEN = """
from texelflow.gpu_delegate.targets.gl.context import open_context
from texelflow.gpu_delegate.base.errors import DeviceError
try:
    with open_context() as context:
        print("open", context.gl.version)
except DeviceError as error:
    print("error", error)
"""


class TestOpening:
    def test_says_who_renders_and_what_it_allows(self, gl_context: Context) -> None:
        assert gl_context.gl.version >= (4, 3)
        assert gl_context.renderer
        assert gl_context.limits.work_group_invocations >= 1024
        assert gl_context.limits.texture_size >= 16384
        assert gl_context.is_software == ("llvmpipe" in gl_context.renderer)

    @pytest.mark.parametrize("environment", [{"EGL_PLATFORM": "surfaceless"}, {"EGL_PLATFORM": ""}, {"DISPLAY": ""}])
    def test_opens_with_and_without_a_platform(self, environment: dict[str, str]) -> None:
        assert run_python(OPEN, **environment).stdout.startswith("open (4, ")

    @pytest.mark.parametrize(
        ("environment", "expected"),
        [
            ({"MESA_GL_VERSION_OVERRIDE": "4.1", "MESA_GLES_VERSION_OVERRIDE": "3.0"}, "OpenGL 4.1 and OpenGL ES 3.0"),
            ({"GLCONTEXT_LINUX_LIBEGL": "libEGL-of-nobody.so"}, "libEGL-of-nobody.so cannot be loaded"),
            ({"GLCONTEXT_DEVICE_INDEX": "99"}, "EGL has no device 99"),
            ({"__EGL_VENDOR_LIBRARY_FILENAMES": "/nonexistent"}, "EGL has no device"),
        ],
    )
    def test_says_in_one_line_what_is_missing(
        self, environment: dict[str, str], expected: str, request: pytest.FixtureRequest
    ) -> None:
        if any(name.startswith("MESA") for name in environment):
            request.getfixturevalue("llvmpipe")
        result = run_python(OPEN, **environment)
        assert result.returncode == 0
        assert result.stdout.startswith("error ")
        assert expected in result.stdout
        assert "--backend cpu" in result.stdout
        assert len(result.stdout.splitlines()) == 1

    def test_refuses_a_device_that_offers_less_than_it_claims(self, gl_context: Context) -> None:
        check_limits(gl_context.limits, "this one")
        with pytest.raises(DeviceError, match="toy: work group invocations is 128, at least 1024"):
            check_limits(replace(gl_context.limits, work_group_invocations=128), "toy")

    def test_wraps_a_context_that_is_current_and_leaves_it_alive(self) -> None:
        import glcontext

        native = glcontext.get_backend_by_name("egl")(mode="standalone", glversion=430)
        loaded: Callable[[str], int] = native.load_opengl_function
        with Context.from_current(loaded) as context:
            assert context.mgl.buffer(b"four").read() == b"four"
            assert context.readback.bytes == 4
        with Context.from_current(loaded) as again:
            assert again.gl.version >= (4, 3)
        native.release()

    def test_two_contexts_take_turns(self, gl_context: Context) -> None:
        with open_context() as other:
            buffer = other.mgl.buffer(b"other")
            gl_context.make_current()
            assert gl_context.mgl.buffer(b"first").read() == b"first"
            other.make_current()
            assert buffer.read() == b"other"
        gl_context.make_current()

    def test_knows_its_thread(self, gl_context: Context) -> None:
        failures: list[BaseException] = []

        def elsewhere() -> None:
            try:
                gl_context.check_thread()
            except AssertionError as error:
                failures.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        gl_context.check_thread()
        assert len(failures) == 1

    def test_release_twice_does_nothing(self) -> None:
        context = open_context()
        context.release()
        context.release()


def load_lines(name: str) -> list[str]:
    return resources.files("texelflow.shaders").joinpath(name).read_text().splitlines()


class TestEntryPoints:
    """On functions of C's own library, whose results tell what arrived."""

    @staticmethod
    def function(name: str, hint: object) -> Callable[..., object]:
        address = ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value
        assert address
        return opengl.entry_point(address, hint)

    @pytest.mark.parametrize("value", [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
    def test_all_32_bits_arrive(self, value: int) -> None:
        swapped = int.from_bytes(value.to_bytes(4, "little"), "big")
        assert self.function("htonl", Callable[[opengl.Uint], opengl.Uint])(value) == swapped

    def test_signs_arrive(self) -> None:
        assert self.function("abs", Callable[[opengl.Int], opengl.Int])(-5) == 5

    def test_sizes_are_longer(self) -> None:
        assert self.function("llabs", Callable[[opengl.Size], opengl.Size])(-(1 << 40)) == 1 << 40

    def test_texts_and_arrays_arrive(self) -> None:
        assert self.function("strlen", Callable[[opengl.Text], opengl.Int])(b"four") == 4
        compare = self.function("memcmp", Callable[[opengl.Array, opengl.Array, opengl.Int], opengl.Int])
        one, other = ((ctypes.c_uint * 2)(7, last) for last in (8, 9))
        assert compare(one, one, 8) == 0
        assert compare(one, other, 8) != 0

    def test_numbers_with_fractions_arrive(self) -> None:
        assert self.function("fabsf", Callable[[opengl.Float], opengl.Float])(-0.5) == 0.5


class TestErrors:
    def test_names_the_error_and_the_place(self, gl_context: Context) -> None:
        gl_context.gl.glBindTexture(0xDEAD, 0)
        with pytest.raises(DeviceError, match="while testing: GL_INVALID_ENUM"):
            gl_context.check_errors("testing")
        gl_context.check_errors("testing")

    def test_a_shader_error_has_its_file_and_line(self, gl_context: Context) -> None:
        source = load("image_to_tensor.comp").replace("void main() {", "nonsense main() {")
        line = load_lines("image_to_tensor.comp").index("void main() {") + 1
        with pytest.raises(DeviceError, match=rf"image_to_tensor.comp:{line}: ") as caught:
            compile_compute(gl_context, source, "broken")
        assert "\n" not in str(caught.value)

    def test_an_error_in_an_include_names_the_include(self, gl_context: Context) -> None:
        source = load("image_to_tensor.comp").replace("int over = ", "int over = nothing + ")
        with pytest.raises(DeviceError, match=r"sampling.glsl:7: .*nothing"):
            compile_compute(gl_context, source, "broken")

    @pytest.mark.parametrize(
        "log",
        [
            "0:12(5): error: `nope' undeclared",
            '0(12) : error C1008: undefined variable "nope"',
            "ERROR: 0:12: 'nope' : undeclared identifier",
        ],
    )
    def test_reads_the_logs_of_the_usual_drivers(self, log: str) -> None:
        line = explain_log(log, "#version 430\n// file 0: some.comp\n")
        assert line.startswith("some.comp:12: ")
        assert "nope" in line

    @pytest.mark.parametrize("name", ["image_to_tensor.comp", "exposure.comp", "mask_to_frame.comp"])
    def test_shaders_are_valid_as_they_stand(self, gl_context: Context, name: str) -> None:
        gl_context.gl.glDeleteProgram(compile_compute(gl_context, load(name), name))

    def test_an_unknown_parameter_is_refused(self) -> None:
        with pytest.raises(ValueError, match="GROUP_Z"):
            load("image_to_tensor.comp", {"GROUP_Z": 1})


def raw(context: Context, name: str, *arguments: object) -> int | None:
    """Call any entry point, loaded as moderngl loads it."""
    address = context._loader.load_opengl_function(name)
    assert address
    types = [type(a) if isinstance(a, ctypes._SimpleCData) else ctypes.c_void_p for a in arguments]
    result: int | None = ctypes.CFUNCTYPE(ctypes.c_void_p, *types)(address)(*arguments)
    return result


U, INT, S = ctypes.c_uint, ctypes.c_int, ctypes.c_ssize_t
ROOM = (ctypes.c_ubyte * 4096)()
RGBA, RED, BYTES, FLOATS = U(opengl.RGBA), U(opengl.RED), U(opengl.UNSIGNED_BYTE), U(opengl.FLOAT)
READ, WRITE = U(opengl.READ_ONLY), U(opengl.WRITE_ONLY)
TEXTURE, BUFFER = U(opengl.TEXTURE_2D), U(opengl.ARRAY_BUFFER)
ZERO, ALL = INT(0), (S(4), S(12))
OBJECT = "the name of the object at hand"

# (entry point, arguments, bytes that it should count, or None if it does not count at all)
CALLS: list[tuple[str, tuple[object, ...], int | None]] = [
    ("glReadPixels", (ZERO, ZERO, INT(3), INT(2), RGBA, BYTES, ROOM), 24),
    ("glReadPixels", (ZERO, ZERO, INT(3), INT(2), RED, FLOATS, ROOM), 24),
    ("glReadnPixels", (ZERO, ZERO, INT(3), INT(2), RGBA, BYTES, INT(64), ROOM), 64),
    ("glReadnPixelsARB", (ZERO, ZERO, INT(3), INT(2), RGBA, BYTES, INT(64), ROOM), 64),
    ("glGetTexImage", (TEXTURE, ZERO, RGBA, BYTES, ROOM), 4 * 4 * 4),
    ("glGetnTexImage", (TEXTURE, ZERO, RGBA, BYTES, INT(100), ROOM), 100),
    ("glGetTextureImage", (OBJECT, ZERO, RGBA, BYTES, INT(100), ROOM), 100),
    ("glGetTextureSubImage", (OBJECT, *[ZERO] * 4, INT(2), INT(2), INT(1), RGBA, BYTES, INT(16), ROOM), 16),
    ("glGetBufferSubData", (BUFFER, *ALL, ROOM), 12),
    ("glGetNamedBufferSubData", (OBJECT, *ALL, ROOM), 12),
    ("glMapBuffer", (BUFFER, READ), 64),
    ("glMapBuffer", (BUFFER, WRITE), None),
    ("glMapNamedBuffer", (OBJECT, READ), 64),
    ("glMapNamedBuffer", (OBJECT, WRITE), None),
    ("glMapBufferRange", (BUFFER, *ALL, U(opengl.MAP_READ_BIT)), 12),
    ("glMapBufferRange", (BUFFER, *ALL, U(opengl.MAP_WRITE_BIT)), None),
    ("glMapNamedBufferRange", (OBJECT, *ALL, U(opengl.MAP_READ_BIT)), 12),
]


@pytest.mark.parametrize("together", [True, False])
def test_textures_are_bound_to_units(gl_context: Context, monkeypatch: pytest.MonkeyPatch, together: bool) -> None:
    gl, unit, binding_2d = gl_context.gl, 5, 0x8069
    monkeypatch.setattr(gl, "texture_units", together and gl.texture_units)
    names = [gl_context.mgl.texture((4, 4), 4).glo for _ in range(2)]
    for name in names:
        gl.bind_texture(unit, opengl.TEXTURE_2D, name)
        gl.glActiveTexture(opengl.TEXTURE0 + unit)
        assert gl.integer(binding_2d) == name
    gl.glActiveTexture(opengl.TEXTURE0)
    gl_context.check_errors("binding textures")


class TestCounting:
    @pytest.mark.parametrize(("name", "arguments", "size"), CALLS)
    def test_every_kind_of_read_is_counted(
        self, gl_context: Context, name: str, arguments: tuple[object, ...], size: int | None
    ) -> None:
        mgl = gl_context.mgl
        framebuffer, texture = mgl.simple_framebuffer((4, 4)), mgl.texture((4, 4), 4, bytes(64))
        buffer = mgl.buffer(bytes(64))
        framebuffer.use()
        gl_context.gl.glBindTexture(opengl.TEXTURE_2D, texture.glo)
        gl_context.gl.glBindBuffer(opengl.ARRAY_BUFFER, buffer.glo)
        thing = U(texture.glo if "Texture" in name else buffer.glo)
        before = replace(gl_context.readback)
        result = raw(gl_context, name, *(thing if a is OBJECT else a for a in arguments))
        gl_context.check_errors(name)
        assert gl_context.readback.bytes - before.bytes == (size or 0)
        assert gl_context.readback.calls - before.calls == (size is not None)
        if "Map" in name:
            assert result
            gl_context.gl.glUnmapBuffer(opengl.ARRAY_BUFFER)

    @pytest.mark.parametrize(
        ("read", "size"),
        [
            (lambda mgl: mgl.buffer(b"12345678").read(), 8),
            (lambda mgl: mgl.buffer(b"12345678").read_into(bytearray(8)), 8),
            (lambda mgl: mgl.texture((5, 3), 4).read(), 60),
            (lambda mgl: mgl.texture((5, 3), 2, dtype="f4").read(), 120),
            (lambda mgl: mgl.simple_framebuffer((5, 3)).read(components=4), 60),
            (lambda mgl: mgl.simple_framebuffer((5, 3)).read(components=3), 45),
            (lambda mgl: mgl.texture_array((4, 4, 2), 4).read(), 128),
        ],
    )
    def test_moderngls_own_reads_are_counted(
        self, gl_context: Context, read: Callable[[moderngl.Context], object], size: int
    ) -> None:
        before = replace(gl_context.readback)
        read(gl_context.mgl)
        assert gl_context.readback.bytes - before.bytes == size
        assert gl_context.readback.calls == before.calls + 1

    def test_ours_are_counted_by_the_same_counter(self, gl_context: Context) -> None:
        buffer = gl_context.mgl.buffer(bytes(range(16)))
        room = np.zeros(8, np.uint8)
        before = gl_context.readback.bytes
        gl_context.gl.glBindBuffer(opengl.COPY_READ_BUFFER, buffer.glo)
        gl_context.gl.glGetBufferSubData(opengl.COPY_READ_BUFFER, 4, 8, room.ctypes.data)
        assert room.tolist() == list(range(4, 12))
        assert gl_context.readback.bytes - before == 8

    def test_pixels_into_a_buffer_count_when_they_are_mapped(self, gl_context: Context) -> None:
        gl, mgl = gl_context.gl, gl_context.mgl
        mgl.simple_framebuffer((4, 4)).use()
        buffer = mgl.buffer(reserve=64)
        before = replace(gl_context.readback)
        gl.glBindBuffer(opengl.PIXEL_PACK_BUFFER, buffer.glo)
        gl.glReadPixels(0, 0, 4, 4, opengl.RGBA, opengl.UNSIGNED_BYTE, None)
        assert (gl_context.readback.calls - before.calls, gl_context.readback.bytes - before.bytes) == (1, 0)
        assert gl.glMapBufferRange(opengl.PIXEL_PACK_BUFFER, 0, 64, opengl.MAP_READ_BIT)
        gl.glUnmapBuffer(opengl.PIXEL_PACK_BUFFER)
        gl.glBindBuffer(opengl.PIXEL_PACK_BUFFER, 0)
        assert (gl_context.readback.calls - before.calls, gl_context.readback.bytes - before.bytes) == (2, 64)

    def test_drawing_and_uploading_count_nothing(self, gl_context: Context) -> None:
        before = replace(gl_context.readback)
        texture = gl_context.mgl.texture((8, 8), 4, bytes(256))
        texture.write(bytes(256))
        gl_context.mgl.buffer(bytes(64)).write(bytes(64))
        gl_context.mgl.simple_framebuffer((8, 8)).clear()
        gl_context.gl.glFinish()
        assert gl_context.readback == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes can be forked")
def test_no_context_is_opened_in_a_process_forked_from_one_that_has_opengl(context: Context) -> None:
    """Its kernels would wait for threads of the driver that are not there. The child tells by its exit code."""
    child = os.fork()
    if not child:
        try:
            open_context()
        except DeviceError as error:
            os._exit(7 if "forked" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7

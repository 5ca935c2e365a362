"""The same networks and pictures on OpenGL ES: the same bits, within its guaranteed limits, and on weak drivers."""

import ctypes
import math
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.app.frame.drawing import test_effects
from tests.app.frame.refinement import test_refine
from tests.app.picture import test_picture
from tests.generators.profiles import random_graph
from tests.helpers.markers import exhaustive, on_both_apis, one_in
from tests.helpers.picture_formats import FORMATS
from tests.helpers.portable import assert_runs_like_a_raspberry_pi
from tests.model_files.model_builder import selfie_like
from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.device.limits import ES_LIMITS
from texelflow.gpu_delegate.reading.reader import load_model, read_model
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import DRAWING, Context, compile_compute, open_context
from texelflow.gpu_delegate.targets.gl.native_context import wanted_apis
from texelflow.gpu_delegate.targets.gl.opengl import NOT_IN_ES, es_endings
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.targets.glsl.shader import for_es, load

Floats = npt.NDArray[np.float32]
EXTENSION = "GL_EXT_texture_buffer"


class TestText:
    """What is changed in a shader for OpenGL ES."""

    SOURCE = load("kernel.comp")

    def test_the_header_alone(self) -> None:
        for version, extensions, header in (
            ((3, 1), {EXTENSION}, ["#version 310 es", f"#extension {EXTENSION} : require"]),
            ((3, 1), {EXTENSION, "GL_OES_texture_buffer"}, ["#version 310 es", f"#extension {EXTENSION} : require"]),
            ((3, 2), {EXTENSION}, ["#version 320 es"]),
            ((3, 1), set[str](), ["#version 310 es"]),
        ):
            lines = for_es(self.SOURCE, version, extensions).splitlines()
            kept = self.SOURCE.splitlines()[1:]
            assert lines[-len(kept) :] == kept
            assert lines[: len(header)] == header
            precisions = lines[len(header) : -len(kept)]
            assert all(line.startswith("precision highp ") for line in precisions)
            assert ("precision highp samplerBuffer;" in precisions) == (version == (3, 2) or bool(extensions))

    def test_a_source_without_a_version_is_refused(self) -> None:
        with pytest.raises(ValueError, match="begins with #version"):
            for_es("void main() {}", (3, 1))

    def test_entry_points_of_extensions(self) -> None:
        assert es_endings((3, 1), {EXTENSION})["glTexBufferRange"] == "EXT"
        assert es_endings((3, 1), {"GL_OES_texture_buffer"})["glTexBufferRange"] == "OES"
        assert es_endings((3, 1), frozenset())["glObjectLabel"] == "KHR"
        newer = es_endings((3, 2), {EXTENSION})
        assert (newer["glTexBufferRange"], newer["glQueryCounter"]) == ("", "EXT")
        assert "glObjectLabel" not in newer


def computed(context: Context, model: Path | bytes, device: Device, image: Floats) -> Floats:
    graph = load_model(model) if isinstance(model, Path) else read_model(model)
    with Program(context, compile_graph(graph, device)) as program:
        program.write(graph.inputs[0], image)
        program.run()
        return np.asarray(program.read(graph.outputs[0]))


@pytest.mark.parametrize("context", ["gles"], indirect=True)
class TestContext:
    def test_is_what_it_says(self, context: Context) -> None:
        assert (context.api, context.gl.is_es, context.can_compute) == ("gles", True, True)
        assert context.gl.version >= (3, 1)
        assert context.gl_version == context.version != ""
        assert context.gl_version.startswith("OpenGL ES 3.")
        assert (context.gl.multi_bind, context.gl.texture_units) == (False, False)

    def test_what_does_not_exist_is_refused_instead_of_doing_nothing(self, context: Context) -> None:
        for name in NOT_IN_ES:
            with pytest.raises(AssertionError, match=f"OpenGL ES has no {name}"):
                getattr(context.gl, name)(0)

    def test_buffers_are_read_by_mapping_and_counted(self, context: Context) -> None:
        buffer, room = context.mgl.buffer(bytes(range(16))), np.zeros(8, np.uint8)
        before = context.readback.bytes
        context.gl.glBindBuffer(opengl.COPY_READ_BUFFER, buffer.glo)
        context.gl.read_buffer(opengl.COPY_READ_BUFFER, 4, 8, room.ctypes.data)
        assert room.tolist() == list(range(4, 12))
        assert context.readback.bytes - before == 8

    def test_time_stamps_and_labels_are_there(self, context: Context) -> None:
        gl, found = context.gl, ctypes.create_string_buffer(64)
        query = gl.generate("Queries")
        gl.glQueryCounter(query, opengl.TIMESTAMP)
        gl.glFinish()
        time_ns = ctypes.c_uint64()
        gl.glGetQueryObjectui64v(query, opengl.QUERY_RESULT, ctypes.byref(time_ns))
        assert time_ns.value > 0
        gl.delete("Queries", query)
        buffer = context.mgl.buffer(reserve=4)
        context.label(opengl.BUFFER, buffer.glo, "named")
        gl.glGetObjectLabel(opengl.BUFFER, buffer.glo, len(found), None, found)
        assert found.value == b"named"

    def test_a_shader_error_has_its_file_and_line(self, context: Context) -> None:
        lines = resources.files("texelflow.shaders").joinpath("image_to_tensor.comp").read_text().splitlines()
        source = load("image_to_tensor.comp").replace("void main() {", "nonsense main() {")
        with pytest.raises(DeviceError, match=rf"image_to_tensor.comp:{lines.index('void main() {') + 1}: "):
            compile_compute(context, source, "broken")

    @exhaustive
    def test_selfie_equals_opengls_bit_for_bit(
        self, context: Context, selfie_model: Path, frame_rgba: npt.NDArray[np.uint8]
    ) -> None:
        image = np.ascontiguousarray(frame_rgba[None, :256, 200:456, :3] / np.float32(255))
        found = computed(context, selfie_model, SOFTWARE, image)
        with open_context(api="gl") as other:
            assert np.array_equal(computed(other, selfie_model, SOFTWARE, image), found)
        assert found.max() > 0.9


@on_both_apis
@one_in(2, "draw", [lambda: random_graph(5, "segmentation").build(), selfie_like], ids=["drawn", "like selfie"])
def test_kernels_keep_within_what_opengl_es_promises(context: Context, draw: Callable[[], bytes]) -> None:
    """Groups of 128 threads, four storage blocks, 16 KiB of shared memory, no buffer texture."""
    least = replace(HARDWARE, limits=replace(ES_LIMITS, storage_block_bytes=1 << 27))
    model = draw()
    compiled = compile_graph(read_model(model), least)
    for kernel in compiled.kernels:
        assert math.prod(kernel.local) <= 128, kernel.name
        blocks = len(kernel.outputs) + [*kernel.fetches, kernel.weights_fetch].count("storage")
        assert blocks <= 4, kernel.name
        assert "texture" not in kernel.fetches, kernel.name
    shape = compiled.source.tensors[compiled.source.inputs[0]].shape
    image = np.random.default_rng(5).random(shape, np.float32)
    assert np.abs(computed(context, model, least, image) - computed(context, model, SOFTWARE, image)).max() < 1e-4


def draw_pictures() -> None:
    """In a process whose OpenGL is like VideoCore's."""
    with open_context(DRAWING) as context:
        assert (context.api, context.limits.texture_buffer_texels) == ("gles", 0)
        gl = context.gl
        assert not any((gl.texture_norm16, gl.float_linear, gl.time_stamps, gl.buffer_storage))
        test_effects.draw_all_effects(context)
        test_refine.refine_a_mask(context)
        for form in (form for form in FORMATS if form.sample_bytes == 2):
            test_picture.test_shaders_have_the_same_pixels(context, form)
        context.check_errors("drawing like a Raspberry Pi")


def run_networks() -> None:
    with open_context() as context:
        model = selfie_like(0)
        graph = read_model(model)
        image = np.random.default_rng(5).random(graph.tensors[graph.inputs[0]].shape, np.float32)
        found = computed(context, model, replace(HARDWARE, limits=context.limits), image)
        assert np.isfinite(found).all()
        context.check_errors("computing like a Raspberry Pi")


@exhaustive
@pytest.mark.gl
def test_networks_and_pictures_on_what_a_raspberry_pi_has() -> None:
    assert_runs_like_a_raspberry_pi(draw_pictures, run_networks)


@pytest.mark.parametrize(
    ("asked", "apis"), [("", ("gl", "gles")), ("gl", ("gl",)), ("gles", ("gles",)), ("x", ("gl", "gles"))]
)
def test_the_environment_chooses(monkeypatch: pytest.MonkeyPatch, asked: str, apis: tuple[str, ...]) -> None:
    monkeypatch.setenv("TEXELFLOW_GL_API", asked)
    assert wanted_apis() == apis

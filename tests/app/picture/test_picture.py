"""Pictures of YUV, gray and RGBA on the CPU and on this machine's OpenGL, against the definition, and libswscale."""

from dataclasses import replace
from typing import Any

import av
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.markers import on_both_apis, one_in
from tests.helpers.picture_formats import FORMATS, ORIENTATIONS, PACKED, PLANAR, noise
from texelflow.app.frame.textures.resample import ImageToTensor
from texelflow.app.frame.textures.upload import DIRECT, ORPHANED, RING, FrameTextures, UploadPath
from texelflow.app.frame.textures.upload_path import choose_path, fastest
from texelflow.app.picture.convert import ToRgba
from texelflow.app.picture.picture import Layout, Matrix, Orientation, Picture, PictureFormat, Siting
from texelflow.app.picture.preprocess import Fit, Preprocessing, Preprocessor
from texelflow.app.picture.video_frame import picture_format, views
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context, compile_compute
from texelflow.gpu_delegate.targets.gl.gl_buffers import read_buffer
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange
from texelflow.gpu_delegate.targets.glsl.shader import load

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]

KR_KB = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593), "fcc": (0.3, 0.11)}
LAYOUTS = {"nv12": "nv12", "yuyv422": "yuyv", "uyvy422": "uyvy"}  # by FFmpeg's names


def pixels(picture: Picture) -> Floats:
    """Every upright pixel (H, W, 3), as the CPU path has it."""
    form = picture.format
    return np.asarray(Preprocessor(form, form.upright_size).image_to_tensor(picture)[0])


def on_device(context: Context, source: str, size: tuple[int, int], frame: FrameTextures) -> Floats:
    """Run a compute shader, one thread for each pixel, that writes vec4s; (H, W, 3) comes back."""
    width, height = size
    buffer = context.mgl.buffer(reserve=width * height * 16)
    program = compile_compute(context, source, "a test's shader")
    frame.bind()
    context.gl.glUseProgram(program)
    context.gl.glBindBufferBase(opengl.SHADER_STORAGE_BUFFER, 0, buffer.glo)
    context.gl.glDispatchCompute(width, height, 1)
    context.gl.glDeleteProgram(program)
    found = read_buffer(context, BufferRange(buffer.glo, 0, width * height * 16)).view(np.float32)
    buffer.release()
    return np.asarray(found.reshape(height, width, 4)[..., :3])


def frame_at(context: Context, picture: Picture, path: UploadPath = DIRECT, times: int = 1) -> Floats:
    """Every upright pixel, as shaders have it, after some uploads."""
    width, height = picture.format.upright_size
    main = f"""
        layout(local_size_x = 1) in;
        layout(std430, binding = 0) writeonly buffer Pixels {{ vec4 pixels[]; }};
        void main() {{
            ivec2 at = ivec2(gl_GlobalInvocationID.xy);
            pixels[at.y * {width} + at.x] = vec4(frame_at(at), 0.0);
        }}"""
    with FrameTextures(context, picture.format, path) as frame:
        for _ in range(times):
            frame.upload(picture)
        assert frame.uploaded_bytes == times * sum(plane.nbytes for plane in picture.planes)
        return on_device(context, load("frame.glsl", frame.defines()) + main, (width, height), frame)


def bilinear(plane: Doubles, xs: Doubles, ys: Doubles) -> Doubles:
    """A plane at columns xs and rows ys, counted from the center of the first pixel."""
    x, y = np.floor(xs).astype(int), np.floor(ys).astype(int)

    def at(rows: npt.NDArray[np.int_], columns: npt.NDArray[np.int_]) -> Doubles:
        return plane[np.clip(rows, 0, plane.shape[0] - 1)][:, np.clip(columns, 0, plane.shape[1] - 1)]

    right, below = xs - x, (ys - y)[:, None]
    top = at(y, x) * (1 - right) + at(y, x + 1) * right
    return np.asarray(top * (1 - below) + (at(y + 1, x) * (1 - right) + at(y + 1, x + 1) * right) * below)


def defined(picture: Picture, size: tuple[int, int]) -> Doubles:
    """The docstring of preprocess.py in doubles, for planar YUV stretched to `size`."""
    form = picture.format
    places = [(np.arange(n) + 0.5) * extent / n - 0.5 for n, extent in zip(size, form.size, strict=True)]
    chroma_places = []
    for axis, place in enumerate(places):
        amid = form.siting == "center" or (form.siting == "left" and axis == 1)
        chroma_places.append(place / 2 - (0.25 if amid else 0) if form.chroma_shift[axis] else place)
    luma, b, r = (plane.astype(np.float64) for plane in picture.planes)
    luma, b, r = bilinear(luma, *places), bilinear(b, *chroma_places), bilinear(r, *chroma_places)
    m, most = 2.0 ** (form.bits - 8), 2**form.bits - 1
    if form.full_range:
        luma, b, r = luma / most, (b - 128 * m) / most, (r - 128 * m) / most
    else:
        luma, b, r = (luma - 16 * m) / (219 * m), (b - 128 * m) / (224 * m), (r - 128 * m) / (224 * m)
    kr, kb = KR_KB[form.matrix]
    red, blue = luma + 2 * (1 - kr) * r, luma + 2 * (1 - kb) * b
    green = (luma - kr * red - kb * blue) / (1 - kr - kb)
    return np.asarray(np.clip(np.stack([red, green, blue], -1), 0, 1))


@pytest.mark.parametrize("size", [(37, 23), (13, 40)])
@pytest.mark.parametrize("siting", ["left", "center", "topleft"])
@pytest.mark.parametrize(
    ("shift", "matrix", "full", "bits"),
    [((1, 1), "bt709", False, 8), ((1, 0), "bt601", True, 8), ((0, 0), "bt2020", False, 10), ((1, 1), "fcc", True, 12)],
)
def test_yuv_becomes_what_is_written(
    size: tuple[int, int], siting: Siting, shift: tuple[int, int], matrix: Matrix, full: bool, bits: int
) -> None:
    form = PictureFormat((37, 23), "yuv", bits, shift, matrix, full, siting)
    picture = noise(form)
    found = Preprocessor(form, size).image_to_tensor(picture)[0]
    np.testing.assert_allclose(found, defined(picture, size), rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("matrix", "full", "bits", "code", "rgb"),
    [
        ("bt601", False, 8, (81, 90, 240), (255, 0, 0)),
        ("bt601", False, 8, (145, 54, 34), (0, 255, 0)),
        ("bt601", False, 8, (41, 240, 110), (0, 0, 255)),
        ("bt601", True, 8, (76, 85, 255), (255, 0, 0)),
        ("bt601", True, 8, (29, 255, 107), (0, 0, 255)),
        ("bt709", False, 8, (63, 102, 240), (255, 0, 0)),
        ("bt709", False, 8, (173, 42, 26), (0, 255, 0)),
        ("bt709", False, 8, (32, 240, 118), (0, 0, 255)),
        ("bt709", False, 8, (235, 128, 128), (255, 255, 255)),
        ("bt709", False, 8, (16, 128, 128), (0, 0, 0)),
        ("bt709", False, 10, (250, 409, 960), (255, 0, 0)),
        ("bt2020", False, 10, (294, 387, 960), (255, 0, 0)),
        ("bt2020", False, 10, (940, 512, 512), (255, 255, 255)),
        ("smpte240m", False, 8, (235, 128, 128), (255, 255, 255)),
    ],
)
def test_published_codes_of_colors(
    matrix: Matrix, full: bool, bits: int, code: tuple[int, ...], rgb: tuple[int, ...]
) -> None:
    form = PictureFormat((2, 2), "yuv", bits, (0, 0), matrix, full)
    planes = tuple(np.full((2, 2), value, np.uint8 if bits == 8 else np.uint16) for value in code)
    assert np.abs(pixels(Picture(form, planes)) * 255 - rgb).max() < 2


def gradient(width: int, height: int) -> npt.NDArray[np.uint8]:
    """Smooth colors, (H, W, 3)."""
    y, x = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j]
    return np.asarray(np.stack([40 + 170 * x, 40 + 170 * y, 200 - 150 * x * y], -1), np.uint8)


@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("matrix", [1, 4, 5, 7, 9])
@pytest.mark.parametrize(
    "name",
    [
        "yuv420p",
        "yuv422p",
        "yuv444p",
        "nv12",
        "yuyv422",
        "uyvy422",
        "yuv420p10le",
        "yuv422p12le",
        "yuvj420p",
        "yuvj444p",
    ],
)
def test_agrees_with_libswscale_where_colors_are_smooth(name: str, matrix: int, levels: int) -> None:
    frame = av.VideoFrame.from_ndarray(gradient(130, 96), "rgb24")
    frame.colorspace = matrix
    levels = 2 if "j" in name else levels
    frame = frame.reformat(format=name, src_color_range=2, dst_color_range=levels, interpolation=0x46004)
    frame.colorspace, frame.color_range = matrix, levels
    form = replace(picture_format(frame, Orientation()), siting="center")  # libswscale knows no other, for even sizes
    assert (form.layout, form.full_range) == (LAYOUTS.get(name, "yuv"), levels == 2)
    planes = views(frame, form)
    assert planes is not None
    found = pixels(Picture(form, planes)) * 255
    expected = ToRgba(130, 96)(frame)[..., :3]
    inner = np.s_[2:-2, 2:-2]
    assert np.abs(found - expected)[inner].max() <= 1.5
    assert np.abs(found - gradient(130, 96))[inner].max() <= 3


@pytest.mark.parametrize("layout", ["yuyv", "uyvy"])
@pytest.mark.parametrize("height", [1, 7, 8])
def test_packed_pixels_are_those_of_their_planes(layout: Layout, height: int) -> None:
    picture = noise(replace(PACKED, layout=layout, size=(10, height)))
    luma, chroma = (0, 1) if layout == "yuyv" else (1, 0)
    packed = picture.planes[0]
    planes = packed[..., luma], packed[:, ::2, chroma], packed[:, 1::2, chroma]
    apart = Picture(replace(picture.format, layout="yuv"), tuple(map(np.ascontiguousarray, planes)))
    assert np.array_equal(pixels(picture), pixels(apart))
    np.testing.assert_allclose(pixels(picture), defined(apart, (10, height)), rtol=0, atol=2e-6)


@pytest.mark.parametrize("wrong", [{"size": (37, 23)}, {"chroma_shift": (1, 1)}, {"bits": 10}], ids=str)
def test_packed_pixels_come_in_pairs(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="pairs"):
        replace(PACKED, **wrong)
    assert picture_format(av.VideoFrame(7, 5, "yuyv422"), Orientation()).layout == "rgba"


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_turning_comes_last(form: PictureFormat) -> None:
    stored = noise(form)
    straight = pixels(stored)
    for orientation in ORIENTATIONS:
        turned = replace(form, orientation=orientation)
        found = pixels(Picture(turned, stored.planes))
        expected = orientation.apply(np.ascontiguousarray(straight))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@one_in(4, "form", FORMATS, ids=str)
@on_both_apis
def test_shaders_have_the_same_pixels(context: Context, form: PictureFormat) -> None:
    for orientation in ORIENTATIONS:
        picture = Picture(replace(form, orientation=orientation), noise(form).planes)
        np.testing.assert_allclose(frame_at(context, picture), pixels(picture), rtol=0, atol=2e-6)


@pytest.mark.parametrize("fit", ["stretch", "crop", "letterbox"])
@one_in(8, "form", FORMATS, ids=str)
def test_shaders_sample_the_same_between_pixels(context: Context, form: PictureFormat, fit: Fit) -> None:
    for orientation in ORIENTATIONS:
        picture = Picture(replace(form, orientation=orientation), noise(form).planes)
        assert_sampled_alike(context, picture, (13, 30), fit, "plain")
    dark = tuple(plane // 2 for plane in noise(form).planes)
    for orientation, size in ((ORIENTATIONS[0], (13, 30)), (ORIENTATIONS[6], (7, 4))):
        assert_sampled_alike(context, Picture(replace(form, orientation=orientation), dark), size, fit, "auto")


def assert_sampled_alike(
    context: Context, picture: Picture, size: tuple[int, int], fit: Fit, preprocessing: Preprocessing
) -> None:
    with FrameTextures(context, picture.format) as frame:
        frame.upload(picture)
        there = ImageToTensor(context, frame, size, fit, (-1, 1), preprocessing)
        buffer = context.mgl.buffer(reserve=there.size_bytes)
        tensor = BufferRange(buffer.glo, 0, there.size_bytes)
        there.run(tensor)
        found = read_buffer(context, tensor).view(np.float32).reshape(size[1], size[0], 4)[..., :3]
        there.release()
        buffer.release()
    expected = Preprocessor(picture.format, size, fit, (-1, 1), preprocessing).image_to_tensor(picture)[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-6)


@pytest.mark.parametrize("path", [RING, ORPHANED], ids=lambda path: path.name)
@pytest.mark.parametrize("form", [PLANAR, replace(PLANAR, layout="nv12"), PACKED], ids=lambda form: form.layout)
@on_both_apis
def test_every_way_up_brings_the_same_pixels(context: Context, path: UploadPath, form: PictureFormat) -> None:
    picture = noise(form)
    assert np.array_equal(frame_at(context, picture, path, times=5), frame_at(context, picture))


def test_direct_stays_unless_another_way_is_clearly_faster() -> None:
    assert fastest({DIRECT: 1.0, RING: 0.95, ORPHANED: 0.92}) == DIRECT
    assert fastest({DIRECT: 1.0, RING: 0.8, ORPHANED: 0.7}) == ORPHANED
    assert fastest({DIRECT: 1.0, RING: 0.9, ORPHANED: 1.7}) == RING


def test_software_goes_direct_untried_and_devices_are_measured(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    if context.is_software:
        assert choose_path(context, PLANAR) == DIRECT
        monkeypatch.setattr(type(context), "is_software", False)
    names = [name for name, ms in choose_path(context, PLANAR).times_ms if ms > 0]
    assert names == ["direct", "ring", "orphaned"]
    assert len(choose_path(context, replace(PLANAR, size=(4096, 3072))).times_ms) == 3
    assert choose_path(context, replace(PLANAR, size=(8000, 8000))) == DIRECT, "trying that would be felt"


def test_planes_are_the_decoders_own_memory() -> None:
    frame = av.VideoFrame(37, 23, "yuv420p")
    form = picture_format(frame, Orientation())
    planes = views(frame, form)
    assert planes is not None
    for plane, array in zip(frame.planes, planes, strict=True):
        assert np.shares_memory(array, np.frombuffer(memoryview(plane), np.uint8))
        plane.update(bytes([7]) * plane.buffer_size)
    del frame, plane
    assert all((array == 7).all() for array in planes)


@pytest.mark.parametrize("name", ["rgb24", "yuva420p", "yuv420p10be", "yvyu422", "yuv411p"])
def test_what_is_not_read_as_decoded_becomes_rgba(name: str) -> None:
    form = picture_format(av.VideoFrame(8, 6, name), Orientation(transpose=True))
    assert (form.layout, form.size, form.upright_size) == ("rgba", (6, 8), (6, 8))

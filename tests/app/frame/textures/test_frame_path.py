"""The frame path on this machine's real OpenGL, against NumPy in double precision and app/picture/preprocess.py."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.markers import on_both_apis, one_in
from tests.helpers.on_device import pixels_of
from tests.helpers.portable import assert_valid_glsl, needs_validator
from texelflow.app.frame.drawing.render import Compositor
from texelflow.app.frame.looks.looks import Look
from texelflow.app.frame.textures.gl_pictures import GlPictures
from texelflow.app.frame.textures.offscreen_target import OffscreenTarget
from texelflow.app.frame.textures.readback import ReadbackRing, frame_mask
from texelflow.app.frame.textures.resample import ImageToTensor, MaskLayout, MaskToFrame
from texelflow.app.frame.textures.upload import FrameTextures
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.app.picture.preprocess import Fit, ImageSize, Preprocessing, Preprocessor, sampling
from texelflow.gpu_delegate.base.errors import DeviceError, UsageError
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import read_buffer
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange
from texelflow.gpu_delegate.targets.glsl.shader import load

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Image = npt.NDArray[np.uint8]

PREPROCESSING: tuple[Preprocessing, ...] = ("plain", "auto")
FITS: tuple[Fit, ...] = ("stretch", "crop", "letterbox")
SIZES = [(640, 480), (641, 479), (1, 1), (3, 1000), (1000, 3), (65, 40)]


def noise(size: ImageSize, seed: int = 0) -> Image:
    """Random pixels: neighbors differ as much as they can, so that a wrong tap or weight shows."""
    rgba = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 4), np.uint8)
    rgba[..., 3] = 255
    return rgba


def noise_mask(size: ImageSize, channels: int | None = None, seed: int = 1) -> Floats:
    shape = (size[1], size[0]) if channels is None else (size[1], size[0], channels)
    return np.random.default_rng(seed).random(shape, np.float32)


class TestDefinition:
    """What app/picture/preprocess.py does, against its docstring written out in doubles."""

    @staticmethod
    def scales(frame: ImageSize, tensor: ImageSize, fit: Fit) -> tuple[Doubles, Doubles]:
        ratio = np.array(frame) / np.array(tensor)
        scale = {"stretch": ratio, "crop": np.full(2, ratio.min()), "letterbox": np.full(2, ratio.max())}[fit]
        return scale, (np.array(frame) - np.array(tensor) * scale) / 2

    @staticmethod
    def bilinear(image: Doubles, xs: Doubles, ys: Doubles) -> Doubles:
        height, width = image.shape[:2]
        x, y = np.floor(xs).astype(int), np.floor(ys).astype(int)
        right, below = (xs - x)[None, :, None], (ys - y)[:, None, None]

        def at(rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]) -> Doubles:
            return image[np.clip(rows, 0, height - 1)][:, np.clip(columns, 0, width - 1)]

        top = at(y, x) * (1 - right) + at(y, x + 1) * right
        bottom = at(y + 1, x) * (1 - right) + at(y + 1, x + 1) * right
        return np.asarray(top * (1 - below) + bottom * below)

    @staticmethod
    def shares(centers: Doubles, scale: float, extent: int) -> Doubles:
        """How much each of `extent` pixels counts for every center."""
        length = min(max(scale, 1.0), 2.5)
        ends = np.arange(extent) * 1.0, np.arange(extent) + 1.0
        ends[0][0], ends[1][-1] = -1e9, 1e9  # edge pixels repeat
        low, high = centers[:, None] - length / 2, centers[:, None] + length / 2
        return np.asarray(np.maximum(np.minimum(high, ends[1]) - np.maximum(low, ends[0]), 0) / length)

    @staticmethod
    def gain(rgba: Image, seen: list[tuple[float, float]]) -> float:
        """Of a single picture, of which the network sees these intervals of columns and rows."""
        columns, rows = (
            np.minimum(np.floor(a + (np.arange(n) + 0.5) / n * (z - a) + 1e-9).astype(int), end - 1)
            for n, (a, z), end in zip((64, 48), seen, rgba.shape[1::-1], strict=True)
        )
        codes = (rgba[np.ix_(rows, columns)].astype(int) @ [77, 150, 29, 0] + 128) >> 8
        light = max(code for code in range(256) if 20 * (codes >= code).sum() > codes.size) / 255
        return float(np.clip((0.5 / light) ** 2, 1, 3)) if light else 3.0

    @classmethod
    def tensor(
        cls, rgba: Image, size: ImageSize, fit: Fit, low: float, high: float, preprocessing: Preprocessing = "plain"
    ) -> Doubles:
        frame = (rgba.shape[1], rgba.shape[0])
        scale, offset = cls.scales(frame, size, fit)
        centers = [(np.arange(n) + 0.5) * s + o for n, s, o in zip(size, scale, offset, strict=True)]
        colors = rgba[..., :3] / 255.0
        if preprocessing == "auto":
            seen = [(max(o, 0), min(o + n * s, f)) for n, s, o, f in zip(size, scale, offset, frame, strict=True)]
            x, y = (cls.shares(c, s, f) for c, s, f in zip(centers, scale, frame, strict=True))
            colors = np.minimum(np.einsum("yh,xw,hwc->yxc", y, x, colors, optimize=True) * cls.gain(rgba, seen), 1)
        else:
            colors = cls.bilinear(colors, *(c - 0.5 for c in centers))
        values = low + (high - low) * colors
        inside = [(c > -1e-9) & (c < n + 1e-9) for c, n in zip(centers, frame, strict=True)]
        values[~(inside[1][:, None] & inside[0])] = low
        return values

    @classmethod
    def mask(cls, mask: Floats, frame: ImageSize, fit: Fit) -> Doubles:
        size = (mask.shape[1], mask.shape[0])
        scale, offset = cls.scales(frame, size, fit)
        centers = [(np.arange(n) + 0.5 - o) / s for n, s, o in zip(frame, scale, offset, strict=True)]
        values = cls.bilinear(mask[..., None].astype(np.float64), *(c - 0.5 for c in centers))[..., 0]
        inside = [(c > -1e-9) & (c < n + 1e-9) for c, n in zip(centers, size, strict=True)]
        values[~(inside[1][:, None] & inside[0])] = 0
        return values

    @one_in(4, "preprocessing", PREPROCESSING)
    @pytest.mark.parametrize("fit", FITS)
    @pytest.mark.parametrize(
        ("size", "tensor_size"), [*product(SIZES, [(256, 144), (13, 7)]), ((640, 480), (256, 256))]
    )
    def test_both_directions_do_what_is_written(
        self, size: ImageSize, tensor_size: ImageSize, fit: Fit, preprocessing: Preprocessing
    ) -> None:
        work = Preprocessor(rgba_format(size), tensor_size, fit, (-1, 1), preprocessing)
        rgba, mask = noise(size), noise_mask(tensor_size)
        tensor = work.image_to_tensor(rgba_picture(rgba))
        assert tensor.shape == (1, tensor_size[1], tensor_size[0], 3)
        assert tensor.dtype == np.float32
        expected = self.tensor(rgba, tensor_size, fit, -1, 1, preprocessing)
        np.testing.assert_allclose(tensor[0], expected, rtol=0, atol=1e-6)
        np.testing.assert_allclose(work.mask_to_frame(mask), self.mask(mask, size, fit), rtol=0, atol=1e-6)

    @settings(max_examples=60, deadline=None)
    @given(
        st.tuples(*[st.integers(1, 90)] * 2),
        st.tuples(*[st.integers(1, 40)] * 2),
        st.sampled_from(FITS),
        st.sampled_from(PREPROCESSING),
        st.integers(1, 4),
    )
    def test_holds_for_any_sizes(
        self, size: ImageSize, tensor_size: ImageSize, fit: Fit, preprocessing: Preprocessing, darker: int
    ) -> None:
        work = Preprocessor(rgba_format(size), tensor_size, fit, preprocessing=preprocessing)
        rgba, mask = noise(size) // np.uint8(darker), noise_mask(tensor_size)
        expected = self.tensor(rgba, tensor_size, fit, 0, 1, preprocessing)
        np.testing.assert_allclose(work.image_to_tensor(rgba_picture(rgba))[0], expected, rtol=0, atol=1e-6)
        np.testing.assert_allclose(work.mask_to_frame(mask), self.mask(mask, size, fit), rtol=0, atol=1e-5)

    def test_the_way_back_inverts_the_way_there(self) -> None:
        there = sampling((641, 479), (256, 144), "letterbox")
        assert there.inverse().inverse() == there

    def test_letterbox_leaves_black_bars_and_crop_leaves_an_unseen_part(self) -> None:
        white = np.full((20, 40, 4), 255, np.uint8)
        boxed = Preprocessor(rgba_format((40, 20)), (8, 8), "letterbox", (-1, 1)).image_to_tensor(rgba_picture(white))[
            0, :, 0, 0
        ]
        assert boxed.tolist() == [-1, -1, 1, 1, 1, 1, -1, -1]
        seen = Preprocessor(rgba_format((40, 20)), (8, 8), "crop").mask_to_frame(np.ones((8, 8), np.float32))
        assert seen[:, :10].max() == seen[:, 30:].max() == 0
        assert seen[:, 10:30].min() == 1

    @pytest.mark.parametrize(("size", "fit"), [((0, 5), "stretch"), ((5, 5), "squeeze")])
    def test_nonsense_is_refused(self, size: ImageSize, fit: Fit) -> None:
        with pytest.raises(UsageError):
            sampling(size, (8, 8), fit)


class Bench:
    """Textures and buffers of one test."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def frame(self, rgba: Image) -> FrameTextures:
        picture = rgba_picture(rgba)
        textures = FrameTextures(self.context, picture.format)
        textures.upload(picture)
        return textures

    def place(self, size_bytes: int, data: Floats | None = None, offset_bytes: int = 512) -> BufferRange:
        """A range that begins inside its buffer, so that an ignored offset shows."""
        buffer = self.context.mgl.buffer(bytes(offset_bytes) + (bytes(size_bytes) if data is None else data.tobytes()))
        return BufferRange(buffer.glo, offset_bytes, size_bytes)

    def tensor(self, values_hwc: Floats, stride: int = 4) -> BufferRange:
        """An output tensor as the engine stores it: slices of four channels; or plain floats."""
        height, width, channels = values_hwc.shape
        if stride == 1:
            return self.place(values_hwc.nbytes, values_hwc)
        slices = np.zeros((-(-channels // 4), height, width, 4), np.float32)
        for channel in range(channels):
            slices[channel // 4, :, :, channel % 4] = values_hwc[..., channel]
        return self.place(slices.nbytes, slices)


@pytest.fixture
def bench(context: Context) -> Bench:
    return Bench(context)


class TestImageToTensor:
    @one_in(4, "preprocessing", PREPROCESSING)
    @pytest.mark.parametrize("fit", FITS)
    @pytest.mark.parametrize("size", SIZES)
    def test_equals_numpy(self, bench: Bench, size: ImageSize, fit: Fit, preprocessing: Preprocessing) -> None:
        tensor_size, rgba = (48, 32), noise(size) // np.uint8(1 if preprocessing == "plain" else 2)
        there = ImageToTensor(bench.context, bench.frame(rgba), tensor_size, fit, (-1, 1), preprocessing)
        tensor = bench.place(there.size_bytes)
        there.run(tensor)
        found = read_buffer(bench.context, tensor).view(np.float32).reshape(32, 48, 4)
        work = Preprocessor(rgba_format(size), tensor_size, fit, (-1, 1), preprocessing)
        expected = work.image_to_tensor(rgba_picture(rgba))[0]
        np.testing.assert_allclose(found[..., :3], expected, rtol=0, atol=1e-5)
        assert not found[..., 3].any()

    @pytest.mark.parametrize("preprocessing", PREPROCESSING)
    @pytest.mark.parametrize(("size", "tensor_size"), [((640, 480), (256, 256)), ((3840, 2160), (256, 144))])
    @on_both_apis
    def test_equals_numpy_in_the_sizes_of_the_models(
        self, bench: Bench, size: ImageSize, tensor_size: ImageSize, preprocessing: Preprocessing
    ) -> None:
        rgba = noise(size)
        there = ImageToTensor(bench.context, bench.frame(rgba), tensor_size, preprocessing=preprocessing)
        tensor = bench.place(there.size_bytes)
        there.run(tensor)
        found = read_buffer(bench.context, tensor).view(np.float32).reshape(*tensor_size[::-1], 4)
        work = Preprocessor(rgba_format(size), tensor_size, preprocessing=preprocessing)
        expected = work.image_to_tensor(rgba_picture(rgba))[0]
        np.testing.assert_allclose(found[..., :3], expected, rtol=0, atol=1e-6)

    @pytest.mark.parametrize("size", [(41, 47), (55, 61)])
    def test_a_frame_of_the_tensors_size_passes_unchanged(self, bench: Bench, size: ImageSize) -> None:
        """Sizes in which float32 division lands below the whole number that it should give."""
        rgba = noise(size)
        there = ImageToTensor(bench.context, bench.frame(rgba), size, value_range=(0, 255))
        tensor = bench.place(there.size_bytes)
        there.run(tensor)
        found = read_buffer(bench.context, tensor).view(np.float32).reshape(*rgba.shape)
        np.testing.assert_allclose(found[..., :3], rgba[..., :3], rtol=0, atol=1e-4)


@needs_validator
def test_the_way_in_is_valid_glsl(tmp_path: Path) -> None:
    """For every layout of pixels: some drivers take what the language does not have."""
    ways = product(("image_to_tensor.comp", "exposure.comp"), range(6))
    sources = {f"{name[:-5]}_{layout}": load(name, {"LAYOUT": layout}) for name, layout in ways}
    sources |= {f"auto_{layout}": load("image_to_tensor.comp", {"LAYOUT": layout, "PLAIN": 0}) for layout in range(6)}
    assert_valid_glsl(sources, tmp_path, "comp")


class TestExposure:
    """Of pictures that follow each other, on GPU and CPU."""

    @on_both_apis
    def test_the_gain_goes_on_by_tenths_and_jumps_where_the_light_does(self, bench: Bench) -> None:
        form, size = rgba_format((20, 10)), (4, 4)
        frame = FrameTextures(bench.context, form)
        there = ImageToTensor(bench.context, frame, size, preprocessing="auto")
        work, tensor = Preprocessor(form, size, preprocessing="auto"), bench.place(there.size_bytes)
        before, readback = None, replace(bench.context.readback)
        for light in (200, 128, 120, 110, 100, 100, 100, 60, 40, 0, 30, None, 125, 125, 250, 250):
            if light is None:
                there.begin_anew()
                work.begin_anew()
                before = None
                continue
            now = min(max((127.5 / light) ** 2, 1.0), 3.0) if light else 3.0
            before = now if before is None or abs(now - before) > 0.25 * before else before + 0.1 * (now - before)
            picture = rgba_picture(np.full((10, 20, 4), light, np.uint8))
            frame.upload(picture)
            there.run(tensor)
            assert bench.context.readback == readback
            found = read_buffer(bench.context, tensor).view(np.float32).reshape(4, 4, 4)[..., :3]
            readback = replace(bench.context.readback)
            np.testing.assert_allclose(found, min(light / 255 * before, 1.0), rtol=1e-6)
            np.testing.assert_allclose(work.image_to_tensor(picture)[0], found, rtol=1e-6)

    @pytest.mark.parametrize("fit", FITS)
    def test_only_what_the_network_sees_counts(self, fit: Fit) -> None:
        """The outer quarters of a wide frame are bright, its middle is dark: cropped off, they do not count."""
        rgba = np.full((20, 80, 4), 100, np.uint8)
        rgba[:, :20], rgba[:, 60:] = 255, 255
        work = Preprocessor(rgba_format((80, 20)), (8, 4), fit, preprocessing="auto")
        tensor = work.image_to_tensor(rgba_picture(rgba))[0]
        assert tensor[2, 4, 0] == pytest.approx(100 / 255 * ((127.5 / 100) ** 2 if fit == "crop" else 1), rel=1e-6)


@on_both_apis
class TestMaskToFrame:
    @staticmethod
    def run(bench: Bench, values_hwc: Floats, size: ImageSize, layout: MaskLayout, fit: Fit = "stretch") -> Floats:
        back = MaskToFrame(bench.context, size, layout, fit)
        place = bench.place(back.size_bytes)
        back.run(bench.tensor(values_hwc, layout.stride), place)
        return frame_mask(read_buffer(bench.context, place), size)

    @one_in(4, "fit", FITS)
    @pytest.mark.parametrize("size", [*SIZES, (256, 256), (100, 60)])
    def test_equals_numpy(self, bench: Bench, size: ImageSize, fit: Fit) -> None:
        mask = noise_mask((256, 144))
        found = self.run(bench, mask[..., None], size, MaskLayout((256, 144)), fit)
        np.testing.assert_allclose(
            found, Preprocessor(rgba_format(size), (256, 144), fit).mask_to_frame(mask), rtol=0, atol=1e-5
        )

    @pytest.mark.parametrize("stride", [1, 4])
    def test_reads_both_layouts(self, bench: Bench, stride: int) -> None:
        mask = noise_mask((9, 5))
        layout = MaskLayout((9, 5), stride=1 if stride == 1 else 4)
        found = self.run(bench, mask[..., None], (22, 13), layout)
        np.testing.assert_allclose(
            found, Preprocessor(rgba_format((22, 13)), (9, 5)).mask_to_frame(mask), rtol=0, atol=1e-6
        )

    @pytest.mark.parametrize("channel", [0, 3, 4, 5])
    def test_applies_softmax_and_takes_the_class(self, bench: Bench, channel: int) -> None:
        logits = noise_mask((9, 5), 6) * 60 - 30
        powers = np.exp(logits.astype(np.float64))
        expected = (powers / powers.sum(-1, keepdims=True))[..., channel].astype(np.float32)
        layout = MaskLayout((9, 5), channels=6, channel=channel, activation="softmax")
        np.testing.assert_allclose(self.run(bench, logits, (9, 5), layout), expected, rtol=0, atol=1e-5)

    def test_applies_sigmoid(self, bench: Bench) -> None:
        logits = noise_mask((9, 5), 1) * 200 - 100
        expected = (1 / (1 + np.exp(-logits[..., 0].astype(np.float64)))).astype(np.float32)
        layout = MaskLayout((9, 5), activation="sigmoid")
        np.testing.assert_allclose(self.run(bench, logits, (9, 5), layout), expected, rtol=0, atol=1e-6)


@on_both_apis
class TestComposite:
    def test_replacing_without_a_background_is_refused(self, bench: Bench) -> None:
        with (
            Compositor(
                GlPictures(bench.context), bench.frame(noise((5, 3))), MaskLayout((2, 2)), look=Look("replace")
            ) as compositor,
            pytest.raises(ValueError, match="background"),
        ):
            compositor.draw(BufferRange(0, 0, 64), OffscreenTarget(bench.context, (5, 3)))

    def test_nothing_is_read_back_between_upload_and_picture(self, bench: Bench) -> None:
        size, context = (64, 48), bench.context
        frame, target = bench.frame(noise(size)), OffscreenTarget(context, size)
        there = ImageToTensor(context, frame, (32, 32))
        tensor = bench.place(there.size_bytes)
        with Compositor(GlPictures(context), frame, MaskLayout((32, 32))) as compositor:
            before = replace(context.readback)
            for seed in (1, 2):
                frame.upload(rgba_picture(noise(size, seed)))
                there.run(tensor)
                compositor.draw(tensor, target)
            context.gl.glFinish()
        assert context.readback == before
        assert frame.uploaded_bytes == 3 * 64 * 48 * 4


class TestFrameTextures:
    @on_both_apis
    def test_keeps_pixels_and_rows_as_they_are(self, bench: Bench) -> None:
        rgba = noise((7, 5))
        mgl = bench.context.mgl
        framebuffer = mgl.framebuffer([mgl.external_texture(bench.frame(rgba).textures[0], (7, 5), 4, 0, "f1")])
        assert np.array_equal(pixels_of(bench.context, framebuffer.glo, (7, 5)), rgba)

    def test_refuses_what_the_device_cannot_hold(self, context: Context) -> None:
        side = context.limits.texture_size + 1
        with pytest.raises(DeviceError, match=f"{side}x1 pixels are too many"):
            FrameTextures(context, rgba_format((side, 1)))
        with pytest.raises(DeviceError, match=f"1x{side} pixels are too many"):
            OffscreenTarget(context, (1, side))

    def test_refuses_another_shape(self, context: Context) -> None:
        with FrameTextures(context, rgba_format((4, 4))) as frame, pytest.raises(ValueError, match="4x4"):
            frame.upload(rgba_picture(noise((4, 5))))


@on_both_apis
class TestReadbackRing:
    def test_a_frame_is_mapped_only_after_the_next_was_submitted(self, bench: Bench) -> None:
        context = bench.context
        values = [np.full(16, number, np.float32) for number in range(5)]
        places = [bench.place(64, value) for value in values]
        ring = ReadbackRing[int](context, 64)
        arrived: list[tuple[int, float]] = []
        for number, place in enumerate(places):
            before = context.readback.bytes
            ring.request_buffer(number, place)
            context.gl.glFinish()  # every fence has signaled now, yet the newest must stay
            batch = [(tag, float(data.view(np.float32).mean())) for tag, data in ring.collect()]
            assert [tag for tag, _ in batch] == ([number - 1] if number else [])
            assert context.readback.bytes - before == 64 * len(batch)
            arrived += batch
        arrived += [(tag, float(data.view(np.float32).mean())) for tag, data in ring.drain()]
        assert arrived == [(number, float(number)) for number in range(5)]
        ring.release()

    def test_gives_the_same_rows_as_a_read_that_waits_but_the_top_one_first(self, bench: Bench) -> None:
        target = OffscreenTarget(bench.context, (33, 17))
        ring = ReadbackRing[str](bench.context, 33 * 17 * 4, depth=2)
        frame = bench.frame(noise((33, 17)))
        with Compositor(GlPictures(bench.context), frame, MaskLayout((4, 4))) as compositor:
            mask = bench.tensor(noise_mask((4, 4), 1))
            expected = {}
            for tag in "abc":
                frame.upload(rgba_picture(noise((33, 17), ord(tag))))
                compositor.draw(mask, target)
                ring.request_picture(tag, target.framebuffer, target.size)
                expected[tag] = pixels_of(bench.context, target.framebuffer, target.size)[::-1].tobytes()
                for found, data in ring.collect():
                    assert data.tobytes() == expected.pop(found)
            for found, data in ring.drain():
                assert data.tobytes() == expected.pop(found)
        assert not expected
        ring.release()

    def test_refuses_more_than_it_holds(self, bench: Bench) -> None:
        ring = ReadbackRing[int](bench.context, 64, depth=2)
        with pytest.raises(ValueError, match="do not fit"):
            ring.request_buffer(0, bench.place(80))
        ring.request_buffer(0, bench.place(64))
        ring.request_buffer(1, bench.place(64))
        assert ring.full
        with pytest.raises(ValueError, match="full"):
            ring.request_buffer(2, bench.place(64))
        ring.release()

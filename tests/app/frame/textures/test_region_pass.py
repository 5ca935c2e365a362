"""Regions cut out of the frame's textures on this machine's OpenGL and OpenGL ES, against their definition in NumPy."""

from dataclasses import replace
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.frame_regions import assert_same_cut, regions
from tests.helpers.markers import on_both_apis, one_in
from tests.helpers.picture_formats import FORMATS, ORIENTATIONS, noise
from tests.helpers.portable import assert_valid_glsl, needs_validator
from texelflow.app.frame.textures.region_pass import RegionToTensor
from texelflow.app.frame.textures.upload import FrameTextures
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.picture.color_planes import Floats
from texelflow.app.picture.picture import ImageSize, Orientation, Picture, PictureFormat, rgba_format
from texelflow.app.picture.region_cut import cut_region
from texelflow.gpu_delegate.model.graph import Steps
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import device_buffer, read_buffer
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange
from texelflow.gpu_delegate.targets.glsl.shader import for_es, load


def cut_on_device(
    context: Context, picture: Picture, size: ImageSize, asked: list[FrameRegion], repeats: bool = False,
    steps: Steps | None = None,
) -> list[Floats]:  # fmt: skip
    """The network's input (H, W, 3), -1 to 1, for each of the regions."""
    found = []
    with FrameTextures(context, picture.format) as textures:
        textures.upload(picture)
        cut = RegionToTensor(context, textures, size, (-1, 1), repeats, steps)
        span = BufferRange(device_buffer(context, cut.size_bytes), 0, cut.size_bytes)
        for region in asked:
            cut.run(region.to_frame(), span)
            found.append(read_buffer(context, span).view(np.float32).reshape(size[1], size[0], 4)[..., :3])
        context.gl.delete("Buffers", span.buffer)
        cut.release()
    return found


@on_both_apis
@one_in(5, ("form", "turned"), [*zip(FORMATS, cycle(ORIENTATIONS[::-1]))], ids=str)
def test_regions_become_what_is_written(context: Context, form: PictureFormat, turned: Orientation) -> None:
    for orientation, size, repeats in ((ORIENTATIONS[0], (19, 9), False), (turned, (5, 3), True)):
        picture = Picture(replace(form, orientation=orientation), noise(form).planes)
        asked = regions(picture.format)
        for region, found in zip(asked, cut_on_device(context, picture, size, asked, repeats), strict=True):
            wanted = cut_region(picture, size, region.to_frame(), (-1, 1), repeats)[0]
            assert_same_cut(found, wanted)


@pytest.mark.parametrize(("frame", "size"), [((1, 1), (1, 1)), ((640, 3), (17, 33)), ((641, 479), (64, 40))])
def test_any_sizes(context: Context, frame: ImageSize, size: ImageSize) -> None:
    picture = noise(rgba_format(frame))
    asked = regions(picture.format)
    for region, found in zip(asked, cut_on_device(context, picture, size, asked), strict=True):
        assert_same_cut(found, cut_region(picture, size, region.to_frame(), (-1, 1))[0])


def test_whole_numbers(context: Context) -> None:
    picture, steps = noise(rgba_format((40, 30))), Steps(-1, 0)
    region = regions(picture.format)[1]
    (found,) = cut_on_device(context, picture, (9, 7), [region], steps=steps)
    wanted = cut_region(picture, (9, 7), region.to_frame(), (-1, 1), False, steps)[0]
    assert set(np.unique(found)) == {-1.0, 0.0}
    assert np.mean(found == wanted) > 0.98  # others lie within rounding of a half


@needs_validator
def test_the_shader_is_valid_in_both_languages(tmp_path: Path) -> None:
    made = {
        f"{layout}-{apart}-{repeats}": load(
            "region_to_tensor.comp", {"LAYOUT": layout, "APART": apart, "REPEATS": repeats, "WHOLE": repeats}
        )
        for layout in range(6)
        for apart in range(2 if 0 < layout < 3 else 1)
        for repeats in range(2)
    }
    made |= {name: load(f"{name}.comp") for name in ("detections", "point_windows", "sure_rows")}
    es = {f"{name}-es": for_es(source, (3, 1)) for name, source in made.items()}
    assert_valid_glsl(made | es, tmp_path, "comp")

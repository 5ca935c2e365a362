"""The CPU's own cutter of regions against its definition in NumPy: all formats, turned, past edges, odd sizes."""

from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest

from tests.helpers.frame_regions import assert_same_cut, regions
from tests.helpers.markers import one_in
from tests.helpers.picture_formats import FORMATS, ORIENTATIONS, noise
from texelflow.app.frame.inference.native_ends import region_picture
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.picture.color_planes import Floats
from texelflow.app.picture.picture import ImageSize, Orientation, Picture, PictureFormat, rgba_format
from texelflow.app.picture.region_cut import cut_places, cut_region
from texelflow.gpu_delegate.model.graph import Steps
from texelflow.gpu_delegate.targets.llvm.compiler import assembly, native_target
from texelflow.gpu_delegate.targets.llvm.frame_steps import FrameKernels
from texelflow.gpu_delegate.targets.llvm.ir import Module
from texelflow.gpu_delegate.targets.llvm.machine import AVX2, AVX512, NEON, CpuTarget
from texelflow.gpu_delegate.targets.llvm.planes import reserve_floats
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool
from texelflow.gpu_delegate.targets.llvm.region_sampler import RegionStep, region_function
from texelflow.gpu_delegate.targets.llvm.work import StepRange, WorkTable

SPANS = (-1.0, 1.0)


def cut_natively(
    picture: Picture, size: ImageSize, region: FrameRegion, repeats: bool, target: CpuTarget, steps: Steps | None = None
) -> Floats:
    """The network's input (H, W, 3) as the kernel makes it, by two threads' parts, in planes with gaps between them."""
    planes = reserve_floats(4 * (size[0] * size[1] + 16)).reshape(4, -1)[:3, : size[0] * size[1]]
    planes = planes.reshape(3, size[1], size[0])
    step = RegionStep(region_picture(picture.format), SPANS, repeats, planes, FrameKernels(target), steps)
    step.take(picture.planes, cut_places(picture.format, size, region.to_frame()))
    middle = step.rows // 2
    tasks = tuple((StepRange(0, *rows, 0, 1),) for rows in ((0, middle), (middle, step.rows)))
    WorkerPool(target, 1).run(WorkTable([tasks], [step.addresses]))
    return planes.transpose(1, 2, 0)


@one_in(5, ("form", "turned"), [*zip(FORMATS, cycle(ORIENTATIONS[::-1]))], ids=str)
def test_regions_become_what_is_written(form: PictureFormat, turned: Orientation) -> None:
    if not region_picture(form).fits:
        pytest.skip("one column: NumPy cuts it")
    target = replace(native_target(), lanes=4)
    for orientation, size in ((ORIENTATIONS[0], (13, 9)), (turned, (5, 3))):
        picture = Picture(replace(form, orientation=orientation), noise(form).planes)
        for number, region in enumerate(regions(picture.format)):
            repeats = bool(number % 2)
            wanted = cut_region(picture, size, region.to_frame(), SPANS, repeats)[0]
            found = cut_natively(picture, size, region, repeats, target)
            assert_same_cut(found, wanted)


@pytest.mark.parametrize(("frame", "size"), [((2, 1), (1, 1)), ((640, 3), (17, 33)), ((90, 71), (16, 31))])
def test_any_sizes_of_rgba_with_the_machines_own_vectors(frame: ImageSize, size: ImageSize) -> None:
    picture = noise(rgba_format(frame))
    for region in regions(picture.format):
        wanted = cut_region(picture, size, region.to_frame(), SPANS)[0]
        found = cut_natively(picture, size, region, False, native_target())
        assert_same_cut(found, wanted)


def test_rows_may_lie_upside_down_and_apart() -> None:
    for form in (FORMATS[0], FORMATS[-1]):
        planes = tuple(plane[::-1] for plane in noise(form).planes)
        picture = Picture(form, planes)
        for region in regions(form):
            wanted = cut_region(
                Picture(form, tuple(map(np.ascontiguousarray, planes))), (7, 5), region.to_frame(), SPANS
            )
            found = cut_natively(picture, (7, 5), region, False, native_target())
            assert_same_cut(found, wanted[0])


def test_whole_numbers() -> None:
    picture, steps = noise(rgba_format((40, 30))), Steps(-1, 0)
    region = regions(picture.format)[1]
    wanted = cut_region(picture, (9, 7), region.to_frame(), SPANS, False, steps)[0]
    found = cut_natively(picture, (9, 7), region, False, native_target(), steps)
    assert set(np.unique(found)) == {-1.0, 0.0}
    assert np.mean(found == wanted) > 0.98  # others lie within rounding of a half


@pytest.mark.parametrize("target", [AVX512, AVX2, NEON], ids=lambda target: target.name)
def test_other_kinds_of_cpu_get_their_own_code(target: CpuTarget) -> None:
    module = Module()
    region_function(module, "cut", region_picture(FORMATS[0]), target.lanes)
    listing = assembly(module.text, target)
    assert {"avx512": "%zmm", "avx2": "%ymm", "neon": "fmla"}[target.name] in listing

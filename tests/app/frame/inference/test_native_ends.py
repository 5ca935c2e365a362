"""Kernels in front of a network and behind it against their definition in NumPy: all formats, odd sizes, every fit."""

from dataclasses import replace
from itertools import cycle, pairwise
from typing import Any

import numpy as np
import pytest

from tests.helpers.markers import one_in
from tests.helpers.picture_formats import FORMATS, ORIENTATIONS, noise
from texelflow.app.frame.inference.native_ends import resized_mask, sampled_picture
from texelflow.app.picture.exposure import Exposure
from texelflow.app.picture.picture import ImageSize, Orientation, Picture, PictureFormat, rgba_format
from texelflow.app.picture.preprocess import Fit, Preprocessing, Preprocessor, sampling
from texelflow.gpu_delegate.targets.llvm.compiler import assembly, native_target
from texelflow.gpu_delegate.targets.llvm.frame_steps import FrameKernels, FrameMaskStep, SamplerStep
from texelflow.gpu_delegate.targets.llvm.ir import Module
from texelflow.gpu_delegate.targets.llvm.machine import AVX2, AVX512, NEON, CpuTarget
from texelflow.gpu_delegate.targets.llvm.mask_resize import mask_function
from texelflow.gpu_delegate.targets.llvm.planes import reserve_floats
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool
from texelflow.gpu_delegate.targets.llvm.sampler import sampler_function
from texelflow.gpu_delegate.targets.llvm.work import StepRange, WorkTable

FITS: tuple[Fit, ...] = ("stretch", "crop", "letterbox")
WAYS: tuple[Preprocessing, ...] = ("plain", "auto")


def narrow(lanes: int) -> CpuTarget:
    """This machine with vectors of so many lanes, whose code is there sooner."""
    return replace(native_target(), lanes=lanes)


def run(step: SamplerStep | FrameMaskStep, target: CpuTarget) -> None:
    """All rows, in parts that any threads might do."""
    edges = [0, step.rows // 3, step.rows // 2, step.rows]
    tasks = tuple((StepRange(0, *each, 0, 1),) for each in pairwise(edges))
    WorkerPool(target, 1).run(WorkTable([tasks], [step.addresses]))


def sampled(picture: Picture, size: ImageSize, fit: Fit, way: Preprocessing, target: CpuTarget) -> Any:
    """The network's input (H, W, 3), -1 to 1, as the kernel makes it in planes with gaps between them."""
    form = picture.format
    there = sampling(form.upright_size, size, fit, area=way == "auto")
    planes = reserve_floats(4 * (size[0] * size[1] + 16)).reshape(4, -1)[:3, : size[0] * size[1]]
    planes = planes.reshape(3, size[1], size[0])
    step = SamplerStep(sampled_picture(form, there), (-1, 1), planes, FrameKernels(target))
    step.take(picture.planes, Exposure(form, there.stored(form)).gain(picture) if way == "auto" else 1.0)
    run(step, target)
    return planes.transpose(1, 2, 0)


@one_in(3, ("form", "fit", "turned"), [*zip(FORMATS, cycle(FITS), cycle(ORIENTATIONS[::-1]))], ids=str)
def test_pictures_become_what_is_written(form: PictureFormat, fit: Fit, turned: Orientation) -> None:
    cases: tuple[tuple[Orientation, Preprocessing, ImageSize], ...] = (
        (ORIENTATIONS[0], "plain", (13, 30)),
        (turned, "auto", (3, 4)),
    )
    for orientation, way, size in cases:
        darker = tuple(plane // (1 if way == "plain" else 2) for plane in noise(form).planes)
        picture = Picture(replace(form, orientation=orientation), darker)
        wanted = Preprocessor(picture.format, size, fit, (-1, 1), way).image_to_tensor(picture)[0]
        found = sampled(picture, size, fit, way, narrow(4))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=5e-6)


@pytest.mark.parametrize(
    ("size", "grid_size", "fit"),
    [((1, 1), (1, 1), "stretch"), ((640, 3), (17, 33), "crop"), ((90, 71), (16, 31), "letterbox")],
)
def test_any_sizes_of_rgba_with_the_machines_own_vectors(size: ImageSize, grid_size: ImageSize, fit: Fit) -> None:
    picture = noise(rgba_format(size))
    wanted = Preprocessor(picture.format, grid_size, fit, (-1, 1)).image_to_tensor(picture)[0]
    np.testing.assert_allclose(sampled(picture, grid_size, fit, "plain", native_target()), wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize(("frame_size", "fit"), [((65, 43), "stretch"), ((41, 90), "crop"), ((90, 17), "letterbox"),
                                                 ((7, 5), "stretch"), ((1, 3), "crop")])  # fmt: skip
def test_masks_of_the_frames_size(lanes: int, frame_size: ImageSize, fit: Fit) -> None:
    target = native_target()
    if lanes > target.lanes:
        lanes = target.lanes
    plane = reserve_floats(19 * 12).reshape(12, 19)
    plane[:] = np.random.default_rng(3).random((12, 19))
    step = FrameMaskStep(resized_mask(frame_size, (19, 12), fit), FrameKernels(narrow(lanes)))
    found = np.full(step.frame_size, 7, np.float32)
    step.take(plane, found)
    run(step, native_target())
    wanted = Preprocessor(rgba_format(frame_size), (19, 12), fit).mask_to_frame(plane)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("target", [AVX512, AVX2, NEON], ids=lambda target: target.name)
def test_other_kinds_of_cpu_get_their_own_code(target: CpuTarget) -> None:
    module, form = Module(), rgba_format((64, 48))
    mask = resized_mask((64, 48), (16, 16), "stretch")
    sampler_function(module, "sampler", sampled_picture(form, sampling((64, 48), (16, 16))), target.lanes)
    mask_function(module, "mask", target.lanes, mask.is_permuted(target, target.lanes))
    listing = assembly(module.text, target)
    assert ("vpermps" in listing) == (target is not NEON)
    assert {"avx512": "%zmm", "avx2": "%ymm", "neon": "fmla"}[target.name] in listing

"""What is held joins masks: on both devices as if the network had seen it, and in pictures of a Pipeline."""

from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

import texelflow
from tests.helpers.held_things import GRID, Way, above, hand_at, room_texture, shown
from tests.helpers.picture_devices import needs_code
from texelflow.app.bench.quality.scene_things import drawn_thing
from texelflow.app.frame.drawing.render import Compositor
from texelflow.app.frame.looks.looks import Look
from texelflow.app.frame.refinement.held import HeldThings
from texelflow.app.frame.refinement.held_motion import GRID_COLUMNS, HeldMotion
from texelflow.app.frame.refinement.refine import Refinement, Refiner
from texelflow.app.frame.textures.picture_device import FramePlanes, PictureDevice
from texelflow.app.frame.textures.resample import MaskLayout
from texelflow.app.media.sources import VideoFrame
from texelflow.app.models.decoders.found import Finding, moved_finding
from texelflow.app.picture.brightness_grid import brightness_grid
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.app.picture.preprocess import Fit, Floats
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange

SQUARE = 64, 64


@dataclass
class GivenMask:
    """A segmenter whose mask is given, and a finder whose hand is."""

    frame: FramePlanes
    mask: BufferRange
    layout: MaskLayout
    hands: tuple[Finding, ...] = ()

    def found(self, age: int = 0) -> tuple[Finding, ...]:
        return self.hands


def frames() -> list[tuple[VideoFrame, Finding]]:
    """Of a hand that moves with a thing; a cell is a pixel."""
    way, made = Way(4, 1.1, 0.3), []
    for number in range(8):
        place = way.at(number)
        gray = np.asarray(np.rint(shown(4, place, above(place))), np.uint8)
        rgba = np.dstack([gray, gray, gray, np.full_like(gray, 255)])
        hand = moved_finding(hand_at(place), 0, 0, 1 / 4)
        made.append((VideoFrame(number, number, 33.0 * number, rgba_picture(rgba)), hand))
    return made


@pytest.mark.parametrize("fit", ["stretch", "crop"])
def test_what_is_held_is_as_if_the_network_had_seen_it(pictures: PictureDevice, fit: Fit) -> None:
    motion, size_bytes = HeldMotion(), 4 * SQUARE[0] * SQUARE[1]
    planes = pictures.planes(rgba_format(GRID), 1)
    given = GivenMask(planes, pictures.memory(SQUARE, size_bytes), MaskLayout(SQUARE, stride=1))
    held = HeldThings(pictures, given, GRID, SQUARE, fit)
    refiners = [Refiner(pictures, given, fit, Refinement(), held=each) for each in (held, None)]
    drawn = [Compositor(pictures, planes, given.layout, fit, refiner=refiner) for refiner in refiners]
    target = pictures.target(GRID)
    for compositor in drawn:
        compositor.look = Look("mask")
    mask = np.zeros(SQUARE[::-1], np.float32)
    mask[40:, 10:30] = 0.9
    for frame, hand in frames():
        planes.upload(frame.picture)
        given.hands = (hand,)
        held.run(frame)
        there = motion.held(brightness_grid(frame.picture, GRID_COLUMNS), given.hands, GRID)
        left = (GRID[0] - GRID[1]) // 2 if fit == "crop" else 0
        seen = cv2.resize(there[:, left : GRID[0] - left], SQUARE, interpolation=cv2.INTER_LINEAR)
        found = []
        for refiner, compositor, values in zip(refiners, drawn, (mask, np.maximum(mask, seen)), strict=True):
            pictures.write(given.mask, np.ascontiguousarray(values, np.float32))
            refiner.run()
            compositor.draw(given.mask, target)
            found.append(pictures.read(target)[..., 0].astype(int))
        np.testing.assert_allclose(found[0], found[1], rtol=0, atol=6)  # what is held goes up in bytes
    assert seen.mean() > 0.02
    held.begin_anew()
    pictures.write(given.mask, mask)
    for refiner, compositor in zip(refiners, drawn, strict=True):
        refiner.reset()
        refiner.run()
        compositor.draw(given.mask, target)
        found.append(pictures.read(target)[..., 0].astype(int))
    assert np.array_equal(found[-1], found[-2])
    for compositor, refiner in zip(drawn, refiners, strict=True):
        compositor.release()
        refiner.release()
    for part in (held, target, planes):
        part.release()
    pictures.free(given.mask)


def camera_frames() -> Iterator[tuple[NDArray[np.uint8], Floats]]:
    """RGB (240, 320, 3) with a hand that moves, and in it a board that looks like the room; and where that is."""
    hand, whole = drawn_thing("phone").scaled(0.4), (320, 240)
    board = room_texture(90, 60, 9, 110)[..., None] * np.array([0.7, 1.0, 0.9], np.float32)
    room = room_texture(*whole, 7, 110)[..., None] * np.array([0.7, 1.0, 0.8], np.float32)
    for number in range(9):
        x, picture, there = 80 + 18 * np.sin(number / 3), room, np.zeros(whole[::-1], np.float32)
        layers = [(hand.color, hand.matte / np.float32(255), 0, 30), (board, np.ones((60, 90), np.float32), 35, 8)]
        for color, matte, right, down in layers:
            place = np.array([[1, 0, x + right], [0, 1, down]], np.float32)
            alpha = np.asarray(cv2.warpAffine(matte, place, whole), np.float32)
            drawn = cv2.warpAffine(color.astype(np.float32), place, whole, borderMode=cv2.BORDER_REPLICATE)
            picture = np.asarray(drawn * alpha[..., None] + picture * (1 - alpha[..., None]), np.float32)
            there = alpha
        yield np.asarray(np.rint(picture), np.uint8), there


@needs_code
def test_a_pipeline_keeps_what_a_hand_holds() -> None:
    shares = []
    with texelflow.Pipeline(model="selfie", backend="cpu", keep_held=True, effect="color") as camera:
        for rgb, board in camera_frames():
            camera(rgb)
            shares.append(float((camera.mask * board).sum() / board.sum()))
        assert any(found.kind == "hand" for found in camera.findings)
        with pytest.raises(UsageError, match="keep_held cannot change"):
            camera.set(keep_held=False)
    assert shares[0] < 0.1  # nothing has moved yet
    assert shares[-1] > 0.7

"""Bounds how many frames a replay without a window holds in memory, and their bytes.

A fast part waits for a slower one behind it: the decoder for the network, the network for the encoders.
"""

from math import prod

from ..outputs.output_worker import MOST_KEPT_FRAMES
from ..outputs.picture_readers import RING
from ..picture.picture import PictureFormat
from ..session.model_stages import KEPT_FRAMES
from ..session.recovery import MOST_AGAIN
from ..threads import AHEAD

_BY_DECODER = 3  # the one that is made, the one that finds no place yet, and the recording's first
_BY_CLOCK = 1  # the one that comes next, unless more are looked at before they are drawn
_BY_WRITER = 2  # the one that is encoded, and the one that finds no place yet
_BYTES_A_PIXEL = 4  # at most, of what is written


def most_decoded(reach: int = 0) -> int:
    """Frames as they were decoded, those included that would have to be drawn again on another device, and so many that
    are looked at before they are drawn."""
    return _BY_DECODER + AHEAD + max(_BY_CLOCK, reach) + MOST_AGAIN


def most_written() -> int:
    """Frames on the way from the device to the encoder, of each output."""
    return RING + MOST_KEPT_FRAMES + _BY_WRITER


def most_frames(outputs: int) -> int:
    """Of all together, with those on the device; what libraries keep to decode and to encode others is not counted."""
    return most_decoded() + KEPT_FRAMES + outputs * most_written()


def most_frame_bytes(frame: PictureFormat, outputs: int, reach: int = 0) -> int:
    """Of a recording whose frames have this format; as most_decoded has it."""
    width, height = frame.size
    decoded = frame.sample_bytes * sum(map(prod, frame.plane_shapes))
    return (most_decoded(reach) + KEPT_FRAMES) * decoded + outputs * most_written() * width * height * _BYTES_A_PIXEL

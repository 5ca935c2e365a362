"""Asks v4l2loopback how many programs read a virtual camera.

v4l2loopback tells since 0.13, by an event of its own: it counts programs that stream, not those that only look what
cameras there are. Each question opens the device anew, so that no event that was missed counts for long.
"""

import sys

from ..capture import v4l2

# V4L2_EVENT_PRIVATE_START of linux/videodev2.h, v4l2loopback's own range in it, and its "client usage"
CLIENT_USAGE = 0x08000000 + 0x08E00000 + 1


def readers(device: str) -> int | None:
    """How many programs stream from /dev/videoN now; None where the driver, or this system, does not tell."""
    if sys.platform != "linux":
        return None
    try:
        with v4l2.open_node(device) as ask:
            return v4l2.state_by_event(ask, CLIENT_USAGE)
    except OSError:
        return None

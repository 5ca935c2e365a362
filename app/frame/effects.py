"""Nothing goes in; the names of the effects and the limits of the blur come out, without what it takes to draw them."""

from typing import Literal

Effect = Literal["tint", "replace", "color", "blur", "cutout", "mask"]
EFFECTS: tuple[Effect, ...] = ("tint", "replace", "color", "blur", "cutout", "mask")
LEAST_RADIUS, MOST_RADIUS = 4.0, 500.0  # of blur, in pixels of the frame

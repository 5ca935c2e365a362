"""Nothing goes in; the names of the effects and the limits of looks come out, without what it takes to draw them."""

from typing import Literal

Effect = Literal["tint", "replace", "color", "blur", "cutout", "mask", "none", "checker"]
EFFECTS: tuple[Effect, ...] = ("tint", "replace", "color", "blur", "cutout", "mask", "none", "checker")
LEAST_RADIUS, MOST_RADIUS = 4.0, 500.0  # of blur, in pixels of the frame
LEAST_GAMMA, MOST_GAMMA = 0.1, 10.0  # of the mask's curve

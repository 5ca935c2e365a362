"""Smooths masks over time on the network's grid, so that they neither flicker nor lag.

The definition, which tests/app/frame/refinement/test_refine.py has in NumPy, with m a new value, s the steady one
before it, and sureness(v) = |2 v - 1|, which is 0 where a network cannot decide:

    moved  = sureness(m) * smoothstep(0.1, 0.4, |m - s|), or where |m - s| > 0.004 and that is more, of one of the four
             values three columns and three rows away, sureness(m) * smoothstep(0.3, 0.6, |m - s|)
    weight = least + (1 - least) * moved
    s     <- s + weight * (m - s)

So values that agree or are uncertain have little weight: still edges stay still. A clear change counts at once, and so
does what is beside one: moving edges do not lag. least is (1 - smooth) cubed, and 1 for the first mask, which is taken
as it is.

Two runs over the same frames, one of which begins later, come to agree: where nothing counts at once, what they differ
by shrinks to 1 - least of it with each frame. Where it is a weight of 2 ** -16, which memory_frames counts, hardly
anything is left that the steps after this one could make visible again, though some of those are steep.

Hindsight is for a picture that waits for the next frame's mask. Where the steady mask s of its own frame is uncertain,
the next one counts by how much more certain it is:

    doubt = 1 - sureness(s)^2      share = sureness(m)^2 / (sureness(m)^2 + sureness(s)^2 + 0.001)
    result = s + max(passed, doubt * share * (1 - least)) * (m - s)

passed is how much of the time between the two masks had passed when the picture was taken: 0 if s is of its own frame.
"""

from dataclasses import replace
from math import ceil, log, log1p

from texelflow.gpu_delegate.targets.gl.opengl import BufferSpan

from ..textures.picture_device import PictureDevice, ShaderDrawing, Target
from ..textures.resample import MaskLayout
from .detail import Detail
from .held import HeldThings

_FORGOTTEN = 2.0**-16  # of a difference
CELL = 2  # pixels of the network's grid along a side of what guided.py fits at once

_MASK_UNIT, _BEFORE_UNIT = 3, 4  # of texture units that others use in turn
_MERGED_UNIT, _HELD_UNIT = 5, 6
_SAMPLERS = {"texels": _MASK_UNIT, "before": _BEFORE_UNIT, "merged": _MERGED_UNIT, "held": _HELD_UNIT}


def memory_frames(least: float) -> int | None:
    """After how many frames masks with that least weight are as if there had been others before; None: never."""
    if least >= 1:
        return 0
    return ceil(log(_FORGOTTEN) / log1p(-least)) if least > 0 else None


class TemporalBlend:
    """The steady mask of a network's output: `steady` is the newest one, in alpha, RGB 0, its top row first.

    Masks have as many rows and columns more as a multiple of CELL takes; those repeat the last ones.
    """

    def __init__(
        self, pictures: PictureDevice, layout: MaskLayout, detail: Detail | None = None, held: HeldThings | None = None
    ) -> None:
        """With `detail` masks are what that has merged, not a tensor's; what is `held` joins them.

        Raises DeviceError if the shaders do not compile, or for a grid that the device does not draw.
        """
        if detail:
            layout = replace(layout, size=detail.size)
        self._detail, self._held = detail, held
        self._pictures = pictures
        self._calls = pictures.calls()
        self._tensor = pictures.texels(layout.texels, layout.stride)
        width, height = (-(-side // CELL) * CELL for side in layout.size)
        self.steady, self._before, self._hindsight = (pictures.target((width, height), "floats") for _ in range(3))
        defines = {
            **layout.defines(),
            **self._tensor.defines(),
            "MERGED": int(detail is not None),
            "HELD": int(held is not None),
        }
        self._drawings = tuple(
            pictures.drawing("refine_blend.frag", {**defines, "HINDSIGHT": hindsight}, _SAMPLERS, label)
            for hindsight, label in enumerate(("refine blend", "refine hindsight"))
        )

    def blend(self, tensor: BufferSpan, least: float) -> Target:
        """Go on to the mask in a tensor; with least 1 whatever was before is forgotten."""
        self.steady, self._before = self._before, self.steady
        self._run(0, tensor, self._before, self.steady, least, 0.0)
        return self.steady

    def hindsight(self, tensor: BufferSpan, least: float, passed: float) -> Target:
        """The steady mask once more, with what the tensor of a later frame tells of it."""
        self._run(1, tensor, self.steady, self._hindsight, least, passed)
        return self._hindsight

    def _run(
        self,
        number: int,
        tensor: BufferSpan,
        before: Target,
        target: Target,
        least: float,
        passed: float,
    ) -> None:
        drawing = self._drawings[number]
        self._tensor.show(tensor)
        merged = self._detail.merged.texture if self._detail else 0
        held = self._held.texture if self._held else 0
        depends_on = number, before.texture, tensor.buffer, tensor.offset_bytes, merged, held, least, passed
        self._calls.run(depends_on, lambda: self._draw(drawing, tensor, before, target, least, passed))

    def _draw(
        self,
        drawing: ShaderDrawing,
        tensor: BufferSpan,
        before: Target,
        target: Target,
        least: float,
        passed: float,
    ) -> None:
        if self._detail:
            self._pictures.bind(_MERGED_UNIT, self._detail.merged.texture)
        else:
            self._tensor.bind(_MASK_UNIT, tensor)
        if self._held:
            self._pictures.bind(_HELD_UNIT, self._held.texture)
        self._pictures.bind(_BEFORE_UNIT, before.texture)
        drawing.use()
        drawing.set_floats("least", least)
        drawing.set_floats("passed", passed)
        drawing.draw(target, target.size)

    def release(self) -> None:
        """Delete shaders and masks; tensors stay."""
        for drawing in self._drawings:
            drawing.release()
        for target in (self.steady, self._before, self._hindsight):
            target.release()
        self._tensor.release()

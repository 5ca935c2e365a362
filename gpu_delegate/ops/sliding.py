"""Stride, dilation, padding and output size of windows that slide over rows and columns."""

from typing import Any

import tflite

from ..device.tile import WRITTEN_TAPS
from ..model.graph import Conv2D, Padding, Pool2D, Size2, TransposeConv2D
from ..model.operators import ACTIVATION_CODES, MAX_STRIDE, Operator


def is_long(taps: int) -> bool:
    """Whether a window of so many taps is a loop in the text of every kernel; of a shorter one the tile says it."""
    return taps > WRITTEN_TAPS


def written_taps(taps: int) -> int:
    """How many of a window's taps a kernel's text has at most."""
    return 1 if is_long(taps) else taps


def positive(operator: Operator, what: str, height: int, width: int) -> Size2:
    """(h, w), both of them possible. Raises ModelError."""
    if not (0 < height <= MAX_STRIDE and 0 < width <= MAX_STRIDE):
        operator.damaged(f"{what} {height}x{width} makes no sense")
    return height, width


def read_stride(operator: Operator, options: Any) -> Size2:
    return positive(operator, "stride", options.StrideH(), options.StrideW())


def read_dilation(operator: Operator, options: Any) -> Size2:
    return positive(operator, "dilation", options.DilationHFactor(), options.DilationWFactor())


def slide(
    operator: Operator, sizes: Size2, kernel: Size2, stride: Size2, dilation: Size2, scheme: int
) -> tuple[Size2, Padding]:
    """Output size and padding of windows that slide over (h, w); SAME (0) puts the odd row and column at the end."""
    if scheme not in (tflite.Padding.SAME, tflite.Padding.VALID):
        operator.damaged(f"padding {scheme} is neither SAME nor VALID")
    outs, befores, afters = [], [], []
    for size, taps, step, gap in zip(sizes, kernel, stride, dilation, strict=True):
        reach = (taps - 1) * gap + 1
        out = -(-size // step) if scheme == tflite.Padding.SAME else (size - reach) // step + 1
        if out < 1:
            operator.damaged(f"a window of {reach} does not fit into {size}")
        total = max(0, (out - 1) * step + reach - size) if scheme == tflite.Padding.SAME else 0
        outs.append(out)
        befores.append(total // 2)
        afters.append(total - total // 2)
    return (outs[0], outs[1]), Padding(befores[0], afters[0], befores[1], afters[1])


def window_options(window: Conv2D | TransposeConv2D | Pool2D) -> dict[str, int]:
    """Without padding, VALID: where SAME pads nothing the two are equivalent, and XNNPACK has faster code for VALID."""
    height, width = window.stride
    return {
        "Padding": tflite.Padding.VALID if window.padding == Padding() else tflite.Padding.SAME,
        "StrideH": height,
        "StrideW": width,
        "FusedActivationFunction": ACTIVATION_CODES[window.activation],
    }


def dilated_options(conv: Conv2D) -> dict[str, int]:
    height, width = conv.dilation
    return window_options(conv) | {"DilationHFactor": height, "DilationWFactor": width}

"""Describes a kernel's tile, and why it was chosen, in a few words."""

from texelflow.gpu_delegate.device.choices import Choice, Choices
from texelflow.gpu_delegate.device.tile import Tile
from texelflow.gpu_delegate.targets.glsl.glsl_kernel import Kernel

from ..console import counted


def describe_tile(tile: Tile) -> str:
    """2 rows, 4 slices, 16x4 threads, literals, weights uniform, inputs texture."""
    rows = counted(tile.rows, "row")
    slices = counted(tile.z_slices, "slice") if tile.z_slices else "all slices"
    sides = "x".join(map(str, tile.local[:2]))
    more = [word for word, said in (("flat", tile.flat), ("leaving", tile.leaves)) if said]
    weights = "literals" if tile.baked else f"weights {tile.weights_fetch}"
    return ", ".join([rows, slices, f"{sides} threads", weights, f"inputs {tile.inputs_fetch}", *more])


def why_chosen(kernel: Kernel, choices: Choices, family: str) -> str:
    """What a kernel's tile comes from: its family's settings, or a measurement with both times."""
    choice = choices.kernels.get(kernel.signature)
    if kernel.tile is None:
        return ""
    if choice is None or choice.tile != kernel.tile:
        return f"family {family}"
    return measured_words(choice)


def measured_words(choice: Choice) -> str:
    """Both times of a measured choice."""
    if choice.ms >= choice.default_ms:
        return f"family's, tuned: {choice.ms:.3f} ms"
    return f"tuned: {choice.ms:.3f}, not {choice.default_ms:.3f} ms"

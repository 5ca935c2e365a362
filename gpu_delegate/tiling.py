"""Tiles: bodies and a device go in, for each body a tile comes out: rows per thread, work-group, literals or not."""

from collections.abc import Sequence

from gpu_delegate.body import Body, is_contraction
from gpu_delegate.device import Device
from gpu_delegate.emit import Tile
from gpu_delegate.layout import shape_of


def choose_tiles(bodies: Sequence[Body], device: Device) -> list[Tile]:
    """A tile for each body. Literals go where there are most pixels, until the budget is spent."""
    budget = device.bake_weights
    baked: set[int] = set()
    for number in sorted(range(len(bodies)), key=lambda k: -bodies[k].domain.pixels):
        weights = weight_count(bodies[number])
        if 0 < weights <= budget and bodies[number].domain.pixels >= device.bake_pixels:
            baked.add(number)
            budget -= weights
    return [choose_tile(body, number in baked, device) for number, body in enumerate(bodies)]


def weight_count(body: Body) -> int:
    """Weights that a body would hold as literals."""
    return sum(
        int(tensor.data.size)
        for node in body.nodes
        if is_contraction(node) or node.op == "DEPTHWISE_CONV_2D"
        if (tensor := body.graph.tensors[node.inputs[1]]).data is not None
    )


def choose_tile(body: Body, baked: bool, device: Device) -> Tile:
    height, width = body.domain.height, body.domain.width
    contractions = sum(is_contraction(node) for node in body.nodes)
    slices = shape_of(body.graph.tensors[body.outputs[0]]).slices
    rows, z_slices = 1, 0
    if not device.software:
        z_slices = 1 if body.split and contractions == 0 else (min(4, slices) if body.split else 0)
    elif baked:
        rows = 1
    elif contractions == 0 and body.split:
        rows, z_slices = 4, 1
    elif body.split and contractions == 1 and slices > 8:
        rows, z_slices = 4, 4
    else:
        rows = 4
    rows = max(r for r in (1, 2, 4, 8) if r <= max(rows, 1) and r <= height)
    local_x = max(8, min(32, 1 << (width - 1).bit_length())) if width > 1 else 1
    local_y = max(1, min(128 // local_x, height // rows))
    return Tile(rows, z_slices, (local_x, local_y, 1), baked)

"""DEPTHWISE_CONV_2D and pooling: windows over each channel alone."""

from gpu_delegate.emit import Emitter, Slice
from gpu_delegate.graph import DepthwiseConv2D, Node, Padding, Pool2D, Size2
from gpu_delegate.packing import bias_of, depthwise_taps
from gpu_delegate.rewrite import float_data

LOWEST = "vec4(-3.402823466e38)"
Axis = tuple[str, str]


def depthwise(emitter: Emitter, node: Node, at: Slice) -> list[str]:
    """One slice of a depthwise convolution: bias + sum over taps of x * w, lane by lane."""
    conv = node.attributes
    assert isinstance(conv, DepthwiseConv2D)
    weights = float_data(emitter.graph.tensors[node.inputs[1]])
    taps, bias = depthwise_taps(weights), bias_of(emitter.graph, node)
    baked = emitter.tile.baked and at.index is not None
    count = taps.shape[1]
    if baked:
        assert at.index is not None
        texts = [emitter.weight(-1, "", taps[at.index, tap]) for tap in range(count)]
        first = emitter.weight(-1, "", bias[at.index])
    else:
        base = emitter.blob_base((node.outputs[0], "taps"), taps)
        texts = [emitter.weight(base, f"({at.text}) * {count} + {tap}", None) for tap in range(count)]
        first = emitter.weight(emitter.blob_base((node.outputs[0], "bias"), bias), at.text, None)
    if emitter.tile.rows > 1:
        first = emitter.declare([first], "b")[0]
    sums = emitter.declare([first for _ in emitter.rows], "d")
    names: dict[int, str] = {}
    for row, tap, value in _windows(
        emitter, node, (weights.shape[1], weights.shape[2]), conv.stride, conv.dilation, conv.padding, at
    ):
        if emitter.tile.rows > 1 and tap not in names:
            names[tap] = emitter.declare([texts[tap]], "w")[0]
        emitter.line(f"{sums[row]} += {value} * {names.get(tap, texts[tap])};")
    return sums


def pool(emitter: Emitter, node: Node, at: Slice) -> list[str]:
    """One slice of average or maximum pooling; padding counts in neither."""
    attributes = node.attributes
    assert isinstance(attributes, Pool2D)
    average = node.op == "AVERAGE_POOL_2D"
    results = emitter.declare(["vec4(0.0)" if average else LOWEST for _ in emitter.rows], "m")
    outside = "vec4(0.0)" if average else LOWEST
    window = _windows(emitter, node, attributes.kernel, attributes.stride, (1, 1), attributes.padding, at, outside)
    for row, _, value in window:
        text = f"{results[row]} + {value}" if average else f"max({results[row]}, {value})"
        emitter.line(f"{results[row]} = {text};")
    if not average:
        return results
    return emitter.declare(
        [f"{result} / {_count(emitter, node, attributes, row)}" for row, result in enumerate(results)]
    )


def _count(emitter: Emitter, node: Node, attributes: Pool2D, row: int) -> str:
    """How many taps of a pixel's window lie inside the map."""
    rows, columns = _axes(emitter, node, attributes.kernel, attributes.stride, (1, 1), attributes.padding, row)

    def inside(axes: list[Axis]) -> str:
        return " + ".join(f"float({valid})" if valid else "1.0" for _, valid in axes)

    return f"(({inside(rows)}) * ({inside(columns)}))"


def _axes(
    emitter: Emitter, node: Node, kernel: Size2, stride: Size2, dilation: Size2, padding: Padding, row: int
) -> tuple[list[Axis], list[Axis]]:
    source, domain = emitter.shape(node.inputs[0]), emitter.body.domain
    rows = [
        emitter.axis(
            "y0",
            stride[0],
            row * stride[0] + ky * dilation[0] - padding.top,
            source.height,
            domain.height - emitter.tile.rows,
        )
        for ky in range(kernel[0])
    ]
    columns = [
        emitter.axis("x0", stride[1], kx * dilation[1] - padding.left, source.width, domain.width - 1)
        for kx in range(kernel[1])
    ]
    return rows, columns


def _windows(
    emitter: Emitter,
    node: Node,
    kernel: Size2,
    stride: Size2,
    dilation: Size2,
    padding: Padding,
    at: Slice,
    outside: str = "vec4(0.0)",
) -> list[tuple[int, int, str]]:
    """(row of the thread, tap, value): source row by source row, so that pixels share their loads."""
    uses: dict[int, list[tuple[int, int]]] = {}
    for row in emitter.rows:
        for ky in range(kernel[0]):
            uses.setdefault(row * stride[0] + ky * dilation[0], []).append((row, ky))
    found = []
    for source_row in sorted(uses):
        for row, ky in uses[source_row]:
            rows, columns = _axes(emitter, node, kernel, stride, dilation, padding, row)
            for kx in range(kernel[1]):
                value = emitter.tap(node.inputs[0], at, rows[ky], columns[kx], outside)
                found.append((row, ky * kernel[1] + kx, value))
    return found

"""Prints a table of how near quantized models here and in XNNPACK are to the reference kernels.

    python -m tests.quantized                        # networks with random weights, each quantized in several ways
    python -m tests.quantized mobilenet              # those whose names hold this
    python -m tests.quantized --folder DIR --json build/quantized.json
    python -m tests.quantized --way native           # this CPU's code instead of OpenGL; also delegate
    python -m tests.quantized --ops                  # every op alone; exit code 1 if one is off by 2 steps

Every model runs in a process of its own, on 60 pictures and 40 times noise. Exit code 1 if one falls short.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.fuzz.children import in_child
from tests.quantized.inputs import NOISE, PICTURES, inputs_of
from tests.quantized.judge import Nearness, faults, nearness
from tests.quantized.networks import NETWORKS_TO_QUANTIZE
from tests.quantized.op_runs import SHAPES, measured_ops
from tests.quantized.ours import WAYS, our_run
from tests.quantized.quantizer import Scheme, hybrid_twin, quantized_twin
from tests.quantized.runs import REFERENCE, XNNPACK, TfliteRun
from texelflow.app.bench.measuring.markdown_table import markdown_lines
from texelflow.gpu_delegate.base.errors import UnsupportedError

MOST_BYTES, MOST_S = 4 << 30, 1200.0
SAMPLES = 10  # inputs that ranges are measured on
SCHEMES = (
    ("int8", Scheme()),
    ("uint8", Scheme("uint8", border="own")),
    ("float-border", Scheme(per_channel=False, border="float32")),
    ("uint8-border", Scheme(border="uint8", float_ops=frozenset({"HARD_SWISH", "LEAKY_RELU", "MEAN"}))),
)
COLUMNS = ("model", "way", "values", "top-1", "classes", "detections", "apart", "XNNPACK: values", "top-1", "classes")


@dataclass(frozen=True)
class Judged:
    """A model to judge."""

    name: str
    model: Callable[[], bytes]


def judged(part: str, folder: Path | None) -> Iterator[Judged]:
    """The models whose names hold this."""
    found = [
        Judged(f"{name}-{label}", partial(generated, name, scheme))
        for name in NETWORKS_TO_QUANTIZE
        for label, scheme in (*SCHEMES, ("hybrid", None))
    ]
    found += [Judged(path.stem, path.read_bytes) for path in (sorted(folder.glob("*.tflite")) if folder else ())]
    return (one for one in found if part in one.name)


def generated(name: str, scheme: Scheme | None) -> bytes:
    """The file of a network; hybrid without a scheme."""
    net = NETWORKS_TO_QUANTIZE[name]()
    if scheme is None:
        return hybrid_twin(net)
    samples = inputs_of(net.shape(net.inputs[0]), "float32")
    return quantized_twin(net, [[values] for values in samples[:: len(samples) // SAMPLES]], scheme)


def measured_text(one: Judged, way: str) -> str:
    """The figures as JSON, for a process of their own."""
    return json.dumps(measured(one, way))


def measured(one: Judged, way: str, pictures: int = PICTURES, noise: int = NOISE) -> dict[str, Any]:
    """The figures of one model."""
    model = one.model()
    reference, xnnpack = TfliteRun(model, REFERENCE), TfliteRun(model, XNNPACK)
    given = [[values] for values in inputs_of(reference.input_shape, reference.input_dtype, pictures, noise)]
    wanted, theirs = [reference(values) for values in given], [xnnpack(values) for values in given]
    try:
        with our_run(model, way) as run:
            ours = [run(values) for values in given]
    except UnsupportedError as error:
        if way == "delegate":
            raise
        return measured(one, "delegate", pictures, noise) | {"whole": str(error)}
    mine, other = nearness(ours, wanted), nearness(theirs, wanted)
    figures = {"name": one.name, "way": way, "inputs": len(given), "ours": asdict(mine), "xnnpack": asdict(other)}
    return figures | {"faults": faults(mine, other)}


def row(figures: dict[str, Any]) -> tuple[str, ...]:
    """Of the table."""
    if "ours" not in figures:
        return (figures["name"], *("-",) * (len(COLUMNS) - 1))
    ours, theirs = Nearness(**figures["ours"]), Nearness(**figures["xnnpack"])
    shown = (
        "-" if share is None else f"{share:.4f}" for share in (ours.values, ours.top, ours.classes, ours.detections)
    )
    others = ("-" if share is None else f"{share:.4f}" for share in (theirs.values, theirs.top, theirs.classes))
    return figures["name"], figures["way"], *shown, f"{ours.apart:.4g}", *others


def judge_ops(way: str) -> int:
    """Print the least share of equal values of each op, and the most steps between two."""
    found = [
        (one.op, dtype, one.equal, one.apart)
        for dtype in ("int8", "uint8")
        for shape in SHAPES
        for one in measured_ops(way, dtype, shape)
    ]
    for op, dtype in dict.fromkeys((op, dtype) for op, dtype, *_ in found):
        equal, apart = zip(*((e, a) for o, d, e, a in found if (o, d) == (op, dtype)), strict=True)
        print(f"{op:26} {dtype:6} {min(equal):7.4f} {max(apart):4.0f}")
    return 0 if max(apart for *_, apart in found) <= 1 else 1


def main() -> int:
    """Judge the models that were named, or all; or single ops."""
    parser = argparse.ArgumentParser(prog="python -m tests.quantized", description="Judge quantized models.")
    parser.add_argument("name", nargs="?", default="", help="what the names of the models hold")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="further .tflite files")
    parser.add_argument("--way", choices=WAYS, default="gl", help="where they run; what is not whole, by the delegate")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures here")
    parser.add_argument("--ops", action="store_true", help="every op alone instead")
    options = parser.parse_args()
    if options.ops:
        return judge_ops("native" if options.way == "delegate" else options.way)
    found: list[dict[str, Any]] = []
    for one in judged(options.name, options.folder):
        print(one.name, file=sys.stderr, flush=True)
        ending = in_child(partial(measured_text, one, options.way), MOST_S, MOST_BYTES)
        failed = {"name": one.name, "faults": [f"{ending.how}: {ending.text}"]}
        known: dict[str, Any] = json.loads(ending.text) if ending.how == "text" else failed
        found.append(known | {"s": round(ending.seconds)})
    print("\n".join(markdown_lines([COLUMNS, *map(row, found)])))
    for figures in found:
        for line in (*figures["faults"], *([f"not whole: {figures['whole']}"] if "whole" in figures else ())):
            print(f"{figures['name']}: {line}")
    if options.json:
        options.json.write_text(json.dumps({"models": found}, indent=1) + "\n")
    right = sum(not figures["faults"] for figures in found)
    print(f"{right} of {len(found)} are near enough")
    return 0 if found and right == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())

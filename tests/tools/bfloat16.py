"""Says what products in bfloat16 cost and save on a CPU that need not be here: errors of models, lengths of loops.

A CPU with AVX512-BF16 is emulated. Errors are those of outputs against float32's of the same code, on frames of the
demo clip and on noise, in units of what lies between an output's least and largest value on all of these; those of
masks, on all frames of the clip, too. Loops are the innermost ones of pointwise layers of MobileNet v2, as LLVM writes
them for a CPU.

    python -m tests.tools.bfloat16 selfie hand-landmark-full mobilenet-v2.tflite --loops
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tests.helpers.emulated import emulated_network
from tests.helpers.x86 import inner_loop
from tests.model_files.sketch import Sketch
from tests.tools.command import run_tool
from texelflow import assets
from texelflow.app.console import Console
from texelflow.app.frame.inference.masks import THRESHOLD
from texelflow.app.media.sources import FileSource
from texelflow.app.models.catalogue import resolve
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.app.picture.preprocess import Preprocessor
from texelflow.app.verbs.check.check_model import Subject, samples_for, subject_of
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.llvm.compiler import assembly
from texelflow.gpu_delegate.targets.llvm.machine import AVX512, CpuTarget
from texelflow.gpu_delegate.targets.llvm.native_program import compile_native

WITH_BF16 = replace(AVX512, features=f"{AVX512.features},+avx512bf16")
LAYERS = (  # side of the map, channels in and out
    (112, 16, 96),
    (56, 144, 24),
    (28, 32, 192),
    (14, 64, 384),
    (14, 384, 64),
    (7, 960, 160),
    (7, 320, 1280),
)
_CPUS = ("sapphirerapids", "znver4")


def output_errors(subject: Subject) -> Sequence[tuple[float, float]]:
    """The largest and the mean error of each output, as a share of its range, or of its magnitude if it has none."""
    networks = [emulated_network(subject.graph, WITH_BF16.with_precision(each)) for each in ("fp32", "bf16")]
    inputs = [list(sample.tensors) for sample in samples_for(subject)]
    runs = [[network.run(values) for values in inputs] for network in networks]
    found = []
    for exact, rounded in zip(*(zip(*outputs, strict=True) for outputs in runs), strict=True):
        wanted = np.stack(exact).astype(np.float64)
        apart = np.abs(np.stack(rounded) - wanted)
        size = float(np.ptp(wanted)) if wanted[0].size > 1 else float(np.abs(wanted).max())
        found.append((float(apart.max()) / size, float(apart.mean()) / size))
    return found


def clip_agreement(subject: Subject) -> tuple[int, float, float]:
    """Of a mask on all frames of the demo clip: how many, the largest error, and the IoU of all together."""
    networks = [emulated_network(subject.graph, WITH_BF16.with_precision(each)) for each in ("fp32", "bf16")]
    _, height, width, _ = subject.graph.tensors[subject.graph.inputs[0]].shape
    preprocessor, frames, largest, both, either = None, 0, 0.0, 0, 0
    with FileSource(Path(assets.__file__).parent / "people.mp4") as source:
        for frame in source:
            rows, columns = frame.rgba.shape[:2]
            form = rgba_format((columns, rows))
            preprocessor = preprocessor or Preprocessor(form, (width, height), "stretch", subject.input_range)
            tensor = preprocessor.image_to_tensor(rgba_picture(frame.rgba))
            exact, rounded = (network.run(tensor)[0] for network in networks)
            frames, largest = frames + 1, max(largest, float(np.abs(rounded - exact).max()))
            both += int(((exact > THRESHOLD) & (rounded > THRESHOLD)).sum())
            either += int(((exact > THRESHOLD) | (rounded > THRESHOLD)).sum())
    return frames, largest, both / either


def loop_of(side: int, channels: int, outputs: int, target: CpuTarget) -> str:
    """The innermost loop of a pointwise layer."""
    net = Sketch(0)
    net.output(net.conv(net.image(side, side, channels), outputs))
    return inner_loop(assembly(compile_native(read_model(net.build()), target).text, target))


def counted(loop: str) -> Mapping[str, int]:
    """Instructions of a loop by what they do, and the products of a lane that it adds."""
    lines = loop.splitlines()
    fused, pairs = len(re.findall("vfmadd", loop)), loop.count("vdpbf16ps")
    loads = len(re.findall(r"^v(?:movup|broadcast|movdq)\w*\s+[^,]*\(", loop, re.MULTILINE))
    return {"all": len(lines), "multiply": fused + pairs, "load": loads, "products": fused + 2 * pairs}


def loop_rows(cpu: str) -> Iterator[tuple[object, ...]]:
    """Of each layer what 64 products of a lane take: instructions in all, and those that multiply and that load."""
    for layer in LAYERS:
        row = list[str]()
        for precision in ("fp32", "bf16"):
            target = replace(WITH_BF16, cpu=cpu).with_precision(precision)
            found = counted(loop_of(*layer, target))
            row += [f"{found[each] * 64 / found['products']:.1f}" for each in ("all", "multiply", "load")]
        side, channels, outputs = layer
        yield f"{side}x{side}, {channels} to {outputs}", *row


def _subject(name: str) -> Subject:
    found = resolve(name)
    graph = read_model(found.path.read_bytes(), found.path.stem)
    return subject_of(name, found.path, graph, found.entry.input_range if found.entry else None)


def _mask_row(name: str) -> tuple[object, ...]:
    frames, largest, iou = clip_agreement(_subject(name))
    return name, frames, f"{largest:.2g}", f"{iou:.4f}"


def bfloat16(
    models: Annotated[list[str] | None, typer.Argument(help="Names of the catalogue, or .tflite files.")] = None,
    clip: Annotated[bool, typer.Option("--clip", help="The masks of the whole demo clip, too.")] = False,
    loops: Annotated[bool, typer.Option("--loops", help="Count instructions of loops.")] = False,
) -> int:
    """Print tables."""
    console = Console()
    rows = list[tuple[object, ...]]()
    for name in models or []:
        errors = output_errors(_subject(name))
        rows += [(name, number, f"{most:.2g}", f"{mean:.2g}") for number, (most, mean) in enumerate(errors)]
    if rows:
        console.table("errors of outputs", ("model", "output", "largest", "mean"), rows)
    masks = [_mask_row(name) for name in models or []] if clip else []
    if masks:
        console.table("masks of the demo clip", ("model", "frames", "largest error", "IoU of all"), masks)
    for cpu in _CPUS if loops else ():
        columns = ("layer", "fp32", "multiply", "load", "bf16", "multiply", "load")
        console.table(f"instructions for 64 products of a lane, {cpu}", columns, list(loop_rows(cpu)))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_tool("bfloat16", bfloat16, arguments)


if __name__ == "__main__":
    sys.exit(main())

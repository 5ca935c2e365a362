"""`texelflow check MODEL --task TASK --data DIR`: how well a model does its task, by each way of running it.

Side by side: TensorFlow Lite's reference kernels, XNNPACK, the GPU and native code, on the same pictures.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np

from texelflow.gpu_delegate.base.errors import TexelflowError, UsageError
from texelflow.gpu_delegate.base.wording import meant
from texelflow.gpu_delegate.cpu.delegation import DelegateMaker
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.delegate.interpreter_delegate import gpu_delegate
from texelflow.gpu_delegate.delegate.native_delegate import native_delegate
from texelflow.gpu_delegate.model.graph import Graph, Hybrid
from texelflow.gpu_delegate.model.quantization import dequantized, with_real_weights
from texelflow.gpu_delegate.plan.compile_options import COMPILE_DEFAULTS, CompileOptions
from texelflow.gpu_delegate.reading.bundles import model_file_bytes

from ...console import Console
from ...files import Files, Read, settle
from ...frame.inference.backends import delegate_options
from ...media.image_file import read_class_map
from ...models.catalogue import model_path, resolve
from ...models.metadata import ModelMetadata, read_metadata
from ..chosen_signature import load_signature
from .accuracy import Confusion
from .picture_inputs import CROP, PictureInput, picture_input, read_rgb
from .task_data import BoxPicture, ClassPicture, MaskPicture, box_pictures, class_names, class_pictures, mask_pictures
from .task_outputs import Classification, Detection, Segmentation, TaskFigures, detection_order, mask_classes

EvaluatedTask = Literal["classification", "detection", "segmentation"]
EVALUATED: tuple[EvaluatedTask, ...] = get_args(EvaluatedTask)
LOWER = 0.01  # than TensorFlow Lite's own figures, that ours may be
REFERENCE, XNNPACK = "TensorFlow Lite, reference kernels", "TensorFlow Lite, XNNPACK"
GPU, NATIVE = "GPU", "native code"
_TITLES: Mapping[str, str] = MappingProxyType(
    {"top_1": "top-1", "top_5": "top-5", "map": "mAP", "map_50": "mAP at 0.5", "mean_iou": "mean IoU"}
)
_AnyPicture = ClassPicture | MaskPicture | BoxPicture


@dataclass(frozen=True)
class EvaluationOptions:
    """What is asked for."""

    task: EvaluatedTask
    data: Path
    input_range: tuple[float, float] | None = None
    tolerance: float | None = None
    compiling: CompileOptions = COMPILE_DEFAULTS
    hybrid: Hybrid = "expanded"
    signature: str | None = None


@dataclass(frozen=True)
class _Task:
    """The pictures, and what makes the figures of each way."""

    pictures: Sequence[_AnyPicture]
    start: Callable[[], TaskFigures]


@dataclass
class _Way:
    """One way of running the model, and what it has given so far; `why` it gives nothing."""

    name: str
    task: TaskFigures
    runner: Reference | None = None
    why: str = ""
    times_ms: list[float] = field(default_factory=list)


def parse_evaluated(text: str | None) -> EvaluatedTask:
    """Raises UsageError."""
    found = next((task for task in EVALUATED if task == text), None)
    if found is None:
        needed = f"{', '.join(EVALUATED[:-1])} or {EVALUATED[-1]}"
        said = f"--task {text[:40]}" if text else "--data"
        raise UsageError(f"{said}: {'' if text else '--task '}{needed} is needed{meant(text or '', EVALUATED)}")
    return found


def evaluate_task(target: str, options: EvaluationOptions, console: Console) -> tuple[dict[str, Any], int]:
    """The figures, and exit code 1 where the GPU's or native code's are lower than both of TensorFlow Lite's.

    Raises TexelflowError.
    """
    settle(Files((Read("the model", model_path(target)),)))
    with console.download() as progress:
        resolved = resolve(target, progress)
    graph = load_signature(resolved.path, options.signature, console, options.hybrid)
    metadata = read_metadata(model_file_bytes(resolved.path), graph.name, graph)
    task = _task(graph, options, metadata)
    listed = resolved.entry.input_range if resolved.entry else None
    said = options.input_range
    crop = CROP if options.task == "classification" else 0.0
    way_in = picture_input(graph, crop, said or metadata.input_range or listed, said is not None)
    with _ways(graph, options, task, console) as ways:
        for number, picture in enumerate(task.pictures, 1):
            if number == 1 or number % 100 == 0:
                console.note(f"picture {number} of {len(task.pictures)}")
            _run(graph, way_in, picture, ways)
    figures = _figures(graph, options, way_in, len(task.pictures), ways)
    _show(figures, console)
    return figures, 0 if figures["passed"] else 1


def _task(graph: Graph, options: EvaluationOptions, metadata: ModelMetadata) -> _Task:
    if not graph.outputs:
        raise UsageError(f"{graph.name}: nothing is given out")
    names = class_names(options.data, metadata.labels)
    if options.task == "classification":
        return _Task(class_pictures(options.data, names), Classification)
    if options.task == "segmentation":
        classes = mask_classes(graph)
        return _Task(mask_pictures(options.data), lambda: Segmentation(Confusion(classes)))
    pictures, categories = box_pictures(options.data, names)
    return _Task(pictures, partial(Detection, detection_order(graph), categories))


@contextlib.contextmanager
def _ways(graph: Graph, options: EvaluationOptions, task: _Task, console: Console) -> Iterator[list[_Way]]:
    """The model ready in each way; what cannot be had says why."""
    gpu = gpu_delegate({**delegate_options(options.compiling), "min_nodes_per_partition": 1})
    made: Sequence[tuple[str, Callable[[], Reference]]] = (
        (REFERENCE, lambda: Reference(with_real_weights(graph), threads=1, kernels="reference")),
        (XNNPACK, lambda: Reference(graph)),
        (GPU, lambda: _delegated(graph, gpu)),
        (NATIVE, lambda: _delegated(graph, native_delegate(every_part=True))),
    )
    with contextlib.ExitStack() as stack:
        found = list[_Way]()
        for name, make in made:
            way = _Way(name, task.start())
            try:
                way.runner = stack.enter_context(contextlib.closing(make()))
            except TexelflowError as error:
                way.why = str(error)
            found.append(way)
        if not any(way.runner for way in found):
            raise UsageError(found[0].why)
        yield found


def _delegated(graph: Graph, maker: DelegateMaker) -> Reference:
    """Raises UnsupportedError where the delegate takes nothing."""
    runner = Reference(graph, delegate=maker)
    assert runner.delegation is not None
    runner.delegation.check_taken(graph.name)
    return runner


def _run(graph: Graph, way_in: PictureInput, picture: _AnyPicture, ways: Sequence[_Way]) -> None:
    """One picture, in every way that has not failed."""
    rgb = read_rgb(picture.path)
    values, size = way_in.values(rgb), (rgb.shape[0], rgb.shape[1])
    true = (
        picture.label
        if isinstance(picture, ClassPicture)
        else picture.true
        if isinstance(picture, BoxPicture)
        else read_class_map(picture.mask)
    )
    for way in ways:
        if way.runner is None:
            continue
        try:
            outputs = way.runner.run(values)
        except TexelflowError as error:
            way.runner, way.why = None, f"{picture.path.name}: {error}"
            continue
        way.times_ms.append(way.runner.invoke_ms)
        real = [
            dequantized(output, graph.tensors[index]) if graph.tensors[index].quantization else output
            for index, output in zip(graph.outputs, outputs, strict=True)
        ]
        way.task.add(real, true, size)


def _figures(
    graph: Graph, options: EvaluationOptions, way_in: PictureInput, pictures: int, ways: Sequence[_Way]
) -> dict[str, Any]:
    rows = [
        {
            "way": way.name,
            **(way.task.figures() if way.runner else dict.fromkeys(way.task.figures())),
            "ms": round(float(np.mean(way.times_ms)), 3) if way.runner else None,
            "where": way.runner.delegation.line if way.runner and way.runner.delegation else "",
            "why": way.why,
        }
        for way in ways
    ]
    lower = LOWER if options.tolerance is None else options.tolerance
    return {
        "model": graph.name,
        "task": options.task,
        "pictures": pictures,
        "input": way_in.facts(),
        "ways": rows,
        "tolerance": lower,
        "passed": _passes(rows, lower),
    }


def _passes(rows: Sequence[Mapping[str, Any]], lower: float) -> bool:
    """Whether no figure of ours is lower, by more than that, than each of TensorFlow Lite's."""
    for name in _TITLES:
        theirs = [row[name] for row in rows if row["way"] in (REFERENCE, XNNPACK) and row.get(name) is not None]
        ours = [row[name] for row in rows if row["way"] in (GPU, NATIVE) and row.get(name) is not None]
        if theirs and ours and min(ours) < min(theirs) - lower:
            return False
    return True


def _show(figures: Mapping[str, Any], console: Console) -> None:
    rows = figures["ways"]
    names = [name for name in _TITLES if name in rows[0]]
    cells = [
        (row["way"], *(_percent(row[name]) for name in names), "-" if row["ms"] is None else f"{row['ms']:.2f}")
        for row in rows
    ]
    columns = ("", *(_TITLES[name] for name in names), "ms")
    console.table(f"{figures['model']}: {figures['task']} of {figures['pictures']} pictures", columns, cells)
    for row in rows:
        if row["where"] or row["why"]:
            console.say(f"{row['way']}: {row['why'] or row['where']}")
    verdict = "no figure of ours is" if figures["passed"] else "a figure of ours is"
    console.say(f"{verdict} more than {figures['tolerance']:.2%} lower than TensorFlow Lite's")


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}"

"""Loads a segmentation model by name or path: its graph, and what its input and output numbers mean."""

import logging
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest

from texelflow.gpu_delegate.base.errors import UnsupportedError, UsageError
from texelflow.gpu_delegate.base.wording import counted
from texelflow.gpu_delegate.model.graph import Graph, Steps
from texelflow.gpu_delegate.model.quantization import byte_steps, real_range, step_size
from texelflow.gpu_delegate.passes.kept_states import keeps_states
from texelflow.gpu_delegate.passes.simplify import drop_unused
from texelflow.gpu_delegate.reading.bundles import model_file_bytes
from texelflow.gpu_delegate.reading.reader import ReadModel, printable_name, read_model

from ..picture.preprocess import ImageSize, Preprocessing
from .catalogue import Progress, resolve
from .class_maps import MOST_MAPPED, is_class_map, with_mask_of_classes
from .entries import SEGMENTATION, SEGMENTERS, ModelEntry, entry_of
from .mattes import (
    ALPHA,
    OwnColors,
    adds_to_one,
    needs_no_activation,
    own_colors_of,
    shown_outputs,
    with_memory,
    with_own_colors,
)
from .metadata import ModelMetadata, read_metadata
from .open_sizes import with_known_sizes
from .spec import ModelSpec, PictureSpec, SpecOptions, decide_spec, input_size

FINDINGS_IN_PYTHON = "texelflow.Pipeline(model=...).findings has it in Python"
_LOG = logging.getLogger(__name__)
_MOST_NAMED = 8  # outputs in a line of text


@dataclass(frozen=True)
class SegmentationModel:
    """A network from one picture to one mask per class, ready to be compiled or interpreted."""

    name: str
    graph: Graph = field(repr=False)
    spec: ModelSpec
    input_size: ImageSize
    output_size: ImageSize
    first_class: int = 0  # the number of the first class, which is the only one of a network that puts out numbers

    @cached_property
    def remembers(self) -> bool:
        """Whether what it makes of a picture depends on those before."""
        return keeps_states(self.graph)

    @property
    def classes(self) -> int:
        """How many its output has, a mask of each."""
        if self.spec.has_own_colors:
            return 1
        return self.graph.tensors[self.graph.outputs[0]].shape[3]

    @property
    def class_names(self) -> tuple[str, ...]:
        """Of each class: its label or, without one of its own, its number, as find_class takes them."""
        labels = self.spec.labels[: self.classes]
        known = Counter(label.casefold() for label in labels)
        named = (label if known[label.casefold()] == 1 and not label.isdecimal() else "" for label in labels)
        numbered = zip_longest(range(self.first_class, self.first_class + self.classes), named, fillvalue="")
        return tuple(label or str(number) for number, label in numbered)


@dataclass(frozen=True)
class PictureModel:
    """A network from one picture to another one, of three channels or, with transparency, of four."""

    name: str
    graph: Graph = field(repr=False)
    spec: PictureSpec
    input_size: ImageSize
    output_size: ImageSize

    @cached_property
    def remembers(self) -> bool:
        """Whether what it makes of a picture depends on those before."""
        return keeps_states(self.graph)

    @property
    def has_alpha(self) -> bool:
        """Whether the picture has transparency."""
        return self.graph.tensors[self.graph.outputs[0]].shape[3] == 4


FrameModel = SegmentationModel | PictureModel  # what frames can be drawn with


@dataclass(frozen=True)
class InputValues:
    """What pictures become for a network: black and white, as its input has them in memory, and whole numbers alone if
    it takes no others."""

    range: tuple[float, float]
    steps: Steps | None = None


def input_values(model: FrameModel) -> InputValues:
    """Of a model; those of a quantized one are steps."""
    source = model.graph.tensors[model.graph.inputs[0]]
    (low, high), size = model.spec.input_range, step_size(source)
    return InputValues((low / size, high / size), byte_steps(source))


def output_scale(model: FrameModel) -> float:
    """What a value of a network's output in memory means: 1, or a step of a quantized one."""
    return step_size(model.graph.tensors[model.graph.outputs[0]])


def preprocessing_for(model: FrameModel, wanted: Preprocessing) -> Preprocessing:
    """What is done to a model's frames: colors of a network are shown, so its frames stay as light as they are."""
    return "plain" if isinstance(model, PictureModel) or model.spec.has_own_colors else wanted


def load_segmentation(
    name_or_path: str,
    options: SpecOptions | None = None,
    progress: Progress | None = None,
    read: ReadModel = read_model,
) -> SegmentationModel:
    """As load_frame_model, for those who need masks: UsageError also for a network that puts out a picture."""
    segmenting = replace(options or SpecOptions(), assumed_task="segmentation")
    model = load_frame_model(name_or_path, segmenting, progress, read)
    if isinstance(model, PictureModel):
        raise UsageError(
            f"{model.name}: its output is a picture, not a mask; live, replay and check show it, "
            "texelflow.Program runs it in Python"
        )
    return model


def load_frame_model(
    name_or_path: str,
    options: SpecOptions | None = None,
    progress: Progress | None = None,
    read: ReadModel = read_model,
) -> FrameModel:
    """The model behind a name of the catalogue (fetched if need be) or a path.

    `progress` gets (bytes, bytes in all) of a download; `read` makes the graph of a file's bytes.
    Raises CatalogueError, ModelError, UnsupportedError, UsageError, also for the catalogue's models of other tasks.
    """
    check_segments(entry_of(name_or_path))  # before anything is fetched
    return frame_model_of(open_model(name_or_path, options, progress, read))


@dataclass(frozen=True)
class OpenModel:
    """A model's file, read: what it is called, its bytes, its graph, what the catalogue says of it."""

    name: str
    data: bytes = field(repr=False)
    graph: Graph = field(repr=False)
    entry: ModelEntry | None
    options: SpecOptions


def sized_graph(data: bytes, graph: Graph) -> Graph:
    """See with_known_sizes; errors tell the graph's name, too."""
    try:
        return with_known_sizes(data, graph)
    except UnsupportedError as error:
        raise UnsupportedError(f"{graph.name}: {error}") from error


def open_model(name_or_path: str, options: SpecOptions | None, progress: Progress | None, read: ReadModel) -> OpenModel:
    """The file behind a name or path. Raises CatalogueError, ModelError, UnsupportedError."""
    shown, data, entry = _read(name_or_path, progress)
    options, graph = options or SpecOptions(), sized_graph(data, read(data, shown))
    if options.hybrid != graph.hybrid:
        graph = replace(graph, hybrid=options.hybrid)
    if graph.other_signatures:
        _LOG.warning("%s: its first subgraph is used, not its signatures %s", shown, ", ".join(graph.other_signatures))
    return OpenModel(shown, data, graph, entry, options)


def frame_model_of(file: OpenModel) -> FrameModel:
    """What load_frame_model makes of a file. Raises UnsupportedError, UsageError."""
    check_segments(file.entry)
    try:
        return _interpret(file.name, file.data, file.graph, file.options, file.entry)
    except (UnsupportedError, UsageError) as error:
        raise type(error)(f"{file.name}: {error}") from error


def check_segments(entry: ModelEntry | None) -> None:
    """UsageError for a model of the catalogue that is for something else; others may segment."""
    if entry is not None and entry.task != SEGMENTATION:
        segmenters = f"those that segment are: {', '.join(SEGMENTERS)}"
        shown = f"live, replay and texelflow.Pipeline show what others find; {FINDINGS_IN_PYTHON}"
        raise UsageError(f"{entry.name} is a model for {entry.task}; {segmenters}; {shown}")


def load_graph(name_or_path: str, progress: Progress | None = None, signature: str | None = None) -> Graph:
    """The graph of any model, found in the same way and named after it: of a signature, or of the first subgraph.

    Raises as load_segmentation, UsageError for a signature that is not there.
    """
    shown, data, _ = _read(name_or_path, progress)
    return read_model(data, shown, signature or 0)


def _read(name_or_path: str, progress: Progress | None) -> tuple[str, bytes, ModelEntry | None]:
    """What a model is called, its file's bytes, and its entry in the catalogue."""
    resolved = resolve(name_or_path, progress)
    shown = resolved.entry.name if resolved.entry else printable_name(resolved.path.name)
    return shown, model_file_bytes(resolved.path), resolved.entry


def _interpret(name: str, data: bytes, graph: Graph, options: SpecOptions, entry: ModelEntry | None) -> FrameModel:
    whole, graph = graph, with_memory(graph)
    if options.output is None and (colors := own_colors_of(graph)):
        return _with_own_colors(name, data, whole, graph, colors, options, entry)
    output = _place_of_output(graph, options.output)
    if output is not None:
        kept = graph.outputs[len(shown_outputs(graph)) :]
        graph = drop_unused(replace(graph, outputs=(graph.outputs[output], *kept)))[0]
    if len(graph.inputs) != 1 + len(graph.states) or len(shown_outputs(graph)) != 1:
        raise UnsupportedError(
            f"{counted(len(graph.inputs), 'input')} and {counted(len(graph.outputs), 'output')}; "
            "a network for frames has one of each"
        )
    source, result = graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]
    metadata = read_metadata(data, name, whole, whole.outputs.index(result.index))
    if is_class_map(result) and not graph.original:
        return _of_class(name, graph, metadata, options, entry)
    metadata = replace(
        metadata,
        input_range=metadata.input_range or real_range(source),
        output_range=metadata.output_range or real_range(result),
        activation=metadata.activation or _known_activation(graph, result.index),
    )
    spec = decide_spec(entry, metadata, options, result.shape)
    sizes = input_size(source.shape), (result.shape[2], result.shape[1])
    if isinstance(spec, PictureSpec):
        return PictureModel(name, graph, spec, *sizes)
    if spec.group and spec.activation == "none":
        spec = replace(spec, adds=adds_to_one(graph, result.index))
    return SegmentationModel(name, graph, spec, *sizes)


def _with_own_colors(
    name: str,
    data: bytes,
    whole: Graph,
    graph: Graph,
    colors: OwnColors,
    options: SpecOptions,
    entry: ModelEntry | None,
) -> SegmentationModel:
    """A network that puts out a foreground and an alpha."""
    metadata = read_metadata(data, name, whole, whole.outputs.index(colors.alpha))
    source, alpha = graph.tensors[graph.inputs[0]], graph.tensors[colors.alpha]
    said = replace(
        metadata,
        input_range=metadata.input_range or real_range(source),
        activation=metadata.activation or _known_activation(graph, alpha.index),
    )
    spec = decide_spec(entry, said, options, alpha.shape)
    if isinstance(spec, PictureSpec):
        raise UsageError("its outputs are a foreground and an alpha, which is a mask: leave --task picture out")
    joined, _ = with_own_colors(graph, colors, spec.input_range, spec.activation)
    own = replace(spec, channel=ALPHA, activation="none", has_own_colors=True)
    return SegmentationModel(name, joined, own, input_size(source.shape), (alpha.shape[2], alpha.shape[1]))


def _known_activation(graph: Graph, output: int) -> str | None:
    return "none" if needs_no_activation(graph, output) else None


def _place_of_output(graph: Graph, wanted: int | str | None) -> int | None:
    """Which of several outputs is wanted; None where there is one. Raises UsageError, UnsupportedError."""
    names = [graph.tensors[index].name for index in shown_outputs(graph)]
    if wanted is None:
        if len(names) > 1 and len(graph.inputs) == 1 + len(graph.states):
            raise UnsupportedError(
                f"it has {len(names)} outputs ({', '.join(names[:_MOST_NAMED])}); texelflow.Segmenter(output=NAME) "
                "makes masks of one"
            )
        return None
    found = [place for place, name in enumerate(names) if wanted in (name, place, str(place))]
    if len(found) != 1 or isinstance(wanted, bool):
        listed = ", ".join(f"{place} {name}" for place, name in enumerate(names[:_MOST_NAMED]))
        raise UsageError(f"--output {printable_name(str(wanted)[:80])}: no such output; there are {listed}")
    if len(names) > 1 and graph.original:
        raise UnsupportedError("TensorFlow Lite alone computes it, with all its outputs; none of them can be chosen")
    return found[0]


def _of_class(
    name: str, graph: Graph, metadata: ModelMetadata, options: SpecOptions, entry: ModelEntry | None
) -> SegmentationModel:
    """A network that puts out the class of each pixel, with one class's mask instead."""
    source, (_, height, width, *_) = graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]].shape
    said = replace(metadata, input_range=metadata.input_range or real_range(source), activation="none")
    classes = max(len(metadata.labels), 3) if metadata.labels else MOST_MAPPED
    spec = decide_spec(entry, said, options, (1, height, width, classes))
    if isinstance(spec, PictureSpec) or spec.activation != "none":
        raise UsageError("its output is the class of each pixel, which is no picture and needs no activation")
    shown = spec.group or (spec.channel,)
    masked = with_mask_of_classes(graph, shown)
    own = (",".join(spec.labels[number] for number in shown),) if max(shown) < len(spec.labels) else ()
    sizes = input_size(source.shape), (width, height)
    return SegmentationModel(name, masked, replace(spec, channel=0, group=(), labels=own), *sizes, spec.channel)

"""Loads a network that finds things by name or path, and whichever of the models that can be shown a file is."""

from dataclasses import replace

from texelflow.gpu_delegate.base.errors import UnsupportedError, UsageError
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.quantization import real_range
from texelflow.gpu_delegate.passes.simplify import drop_unused
from texelflow.gpu_delegate.reading.reader import ReadModel, read_model

from .catalogue import Progress
from .decoders.decoder_list import DECODERS
from .decoders.decoding import ModelFacts
from .entries import SEGMENTATION
from .finding_model import FindingModel
from .metadata import ModelMetadata, read_metadata
from .model_loading import FrameModel, OpenModel, frame_model_of, open_model
from .spec import SpecOptions, input_size

__all__ = ["ShownModel", "load_finding_model", "load_shown_model"]

ShownModel = FrameModel | FindingModel
_MOST_LISTED = 8  # outputs in a line of text
_SAY_INPUT_RANGE = "the model's file does not say what black and white are: give --input-range, mostly 0,1 or -1,1"


def load_finding_model(
    name_or_path: str,
    options: SpecOptions | None = None,
    progress: Progress | None = None,
    read: ReadModel = read_model,
) -> FindingModel:
    """The network that finds things behind a name of the catalogue (fetched if need be) or a path, and its decoder.

    Of the options the input range counts. Outputs that the decoder does not read are dropped, unless TensorFlow Lite
    alone can compute the network. Raises as load_frame_model; UnsupportedError where no decoder knows the outputs.
    """
    return _finding_model_of(open_model(name_or_path, options, progress, read))


def load_shown_model(
    name_or_path: str,
    options: SpecOptions | None = None,
    progress: Progress | None = None,
    read: ReadModel = read_model,
) -> ShownModel:
    """Whichever a model is: a segmentation, a network from picture to picture, or one that finds things.

    Options that are about masks or pictures alone decide for these. Raises as the functions for each.
    """
    file = open_model(name_or_path, options, progress, read)
    said = file.options
    is_frame = any(
        value is not None for value in (said.task, said.activation, said.channel, said.output_range, said.output)
    )
    if file.entry and not is_frame:
        return frame_model_of(file) if file.entry.task == SEGMENTATION else _finding_model_of(file)
    if is_frame:
        return frame_model_of(file)
    found = _found(file)
    if found:
        return found
    one_map = len(file.graph.outputs) == 1 and _is_map(file.graph)
    return frame_model_of(file) if one_map else _finding_model_of(file)


def _is_map(graph: Graph) -> bool:
    """Whether an output has numbers for each place of a picture."""
    shape = graph.tensors[graph.outputs[0]].shape
    return len(shape) in (3, 4) and min(shape[1:3]) > 1


def _finding_model_of(file: OpenModel) -> FindingModel:
    found = _found(file)
    if found:
        return found
    graph = file.graph
    outputs = [graph.tensors[place] for place in graph.outputs]
    listed = ", ".join(f"{tensor.name} {list(tensor.shape)}" for tensor in outputs[:_MOST_LISTED])
    more = ", …" if len(outputs) > _MOST_LISTED else ""
    raise UnsupportedError(f"{file.name}: no decoder knows what its outputs mean ({listed}{more})")


def _found(file: OpenModel) -> FindingModel | None:
    """The model with the first decoder that knows it; None where none does. Raises UnsupportedError, UsageError."""
    graph = file.graph
    try:
        if len(graph.inputs) != 1:
            return None
        source = graph.tensors[graph.inputs[0]]
        size, metadata = input_size(source.shape), _metadata(file)
        facts = ModelFacts(file.name, graph, file.entry, metadata, size)
        for decoder in DECODERS:
            decoding = decoder.decoding(facts)
            if decoding:
                entry = file.entry
                known = entry.input_range if entry else decoding.input_range
                input_range = file.options.input_range or metadata.input_range or real_range(source) or known
                if input_range is None:
                    raise UsageError(_SAY_INPUT_RANGE)
                kept, reads = _with_outputs(graph, decoding.reads)
                return FindingModel(
                    file.name, kept, reads, input_range, size, decoding, decoder.name, decoder.repeats_edges
                )
    except (UnsupportedError, UsageError) as error:
        raise type(error)(f"{file.name}: {error}") from error
    return None


def _with_outputs(graph: Graph, reads: tuple[int, ...]) -> tuple[Graph, tuple[int, ...]]:
    """The graph with these outputs alone, in this order, and their places in it.

    Where TensorFlow Lite alone computes the file, all outputs stay.
    """
    if graph.original:
        return graph, reads
    outputs = tuple(graph.outputs[place] for place in reads)
    return drop_unused(replace(graph, outputs=outputs))[0], tuple(range(len(reads)))


def _metadata(file: OpenModel) -> ModelMetadata:
    """What the file says of itself, with the labels of the first output that has some."""
    said = [
        read_metadata(file.data, file.name, file.graph, place, tells=False) for place in range(len(file.graph.outputs))
    ]
    return replace(said[0], labels=next((one.labels for one in said if one.labels), ())) if said else ModelMetadata()

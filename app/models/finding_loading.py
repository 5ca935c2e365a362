"""Loads a network that finds things by name or path, and whichever of the models that can be shown a file is."""

from dataclasses import replace

from texelflow.gpu_delegate.base.errors import UnsupportedError, UsageError
from texelflow.gpu_delegate.base.wording import counted
from texelflow.gpu_delegate.model.graph import Graph, Shape
from texelflow.gpu_delegate.model.quantization import real_range
from texelflow.gpu_delegate.passes.simplify import drop_unused
from texelflow.gpu_delegate.reading.reader import ReadModel, read_model

from .catalogue import Progress
from .class_maps import is_class_map
from .decoders.blaze_boxes import missed_anchors
from .decoders.decoder_list import DECODERS
from .decoders.decoding import InputRange, ModelFacts
from .entries import SEGMENTATION, entry_of
from .export_labels import exported_labels
from .finding_model import FindingModel
from .mattes import own_colors_of
from .metadata import ModelMetadata, read_metadata
from .model_loading import FINDINGS_IN_PYTHON, FrameModel, OpenModel, frame_model_of, open_model
from .spec import FINDING_TASKS, TASKS, SpecOptions, input_size

__all__ = ["ShownModel", "finds_instead", "load_finding_model", "load_shown_model", "shown_model_of"]

ShownModel = FrameModel | FindingModel
_MOST_LISTED = 8  # outputs in a line of text
_MOST_ASKED = 16  # outputs whose labels are looked for
_SAY_INPUT_RANGE = "the model's file does not say what black and white are: give --input-range, mostly 0,1 or -1,1"


def load_finding_model(
    name_or_path: str,
    options: SpecOptions | None = None,
    progress: Progress | None = None,
    read: ReadModel = read_model,
) -> FindingModel:
    """The network that finds things behind a name of the catalogue (fetched if need be) or a path, and its decoder.

    Of the options the input range and the task count. Outputs that the decoder does not read are dropped, unless
    TensorFlow Lite alone can compute the network. Raises as load_frame_model; UnsupportedError where no decoder knows
    the outputs, UsageError where an option would help.
    """
    file = open_model(name_or_path, options, progress, read)
    found = _found(file)
    if found is None:
        raise UnsupportedError(f"{file.name}: {_unknown(file)}")
    return found


def load_shown_model(
    name_or_path: str,
    options: SpecOptions | None = None,
    progress: Progress | None = None,
    read: ReadModel = read_model,
) -> ShownModel:
    """Whichever a model is: a segmentation, a network from picture to picture, or one that finds things.

    Options that are about masks or pictures alone decide for these. Raises as the functions for each.
    """
    return shown_model_of(open_model(name_or_path, options, progress, read))


def shown_model_of(file: OpenModel) -> ShownModel:
    """What load_shown_model makes of a file. Raises UnsupportedError, UsageError."""
    said, of_frames = file.options, _of_frame_models(file.options)
    if said.task not in (None, *FINDING_TASKS) or (file.entry and file.entry.task == SEGMENTATION and not said.task):
        return frame_model_of(file)
    if of_frames or said.output is not None:
        try:
            return frame_model_of(file)
        except (UnsupportedError, UsageError):
            if of_frames and _found(replace(file, options=SpecOptions(said.input_range, hybrid=said.hybrid))):
                raise UsageError(_not_for_finders(file.name, of_frames)) from None
            raise
    found = _found(file)
    if found:
        return found
    if said.task is None and _may_be_frame(file.graph):
        return frame_model_of(file)
    raise UnsupportedError(f"{file.name}: {_unknown(file)}")


def finds_instead(path: str, read: ReadModel = read_model) -> str:
    """Who shows what a file finds that is no segmentation, to go on with in a line; "" for a file that finds nothing.

    Raises as open_model.
    """
    if entry_of(path):  # which are refused by a line of their own, before they are fetched
        return ""
    try:
        found = _found(open_model(path, None, None, read))
    except (UnsupportedError, UsageError):
        return ""
    shown = f"it finds things ({found.decoder}), which live, replay and texelflow.Pipeline show" if found else ""
    return f"{shown}; {FINDINGS_IN_PYTHON}" if shown else ""


def _of_frame_models(options: SpecOptions) -> str:
    """The first given option that is about masks or pictures alone; "" if none is."""
    given = {"--channel": options.channel, "--activation": options.activation, "--output-range": options.output_range}
    return next((name for name, value in given.items() if value is not None), "")


def _not_for_finders(name: str, option: str) -> str:
    what = "puts out no picture" if option == "--output-range" else "has no mask"
    return f"{option}: {name} finds things and {what}; leave it out or choose another --model"


def _may_be_frame(graph: Graph) -> bool:
    """Whether a picture is among the inputs, and the one output, or one of a matte's, has numbers for each place."""
    sources, results = ([graph.tensors[place] for place in places] for places in (graph.inputs, graph.outputs))
    maps = any(is_class_map(each) or (len(each.shape) == 4 and min(each.shape[1:3]) > 1) for each in results)
    pictures = any(_is_picture(source.shape) for source in sources)
    return maps and pictures and (len(results) == 1 or len(sources) > 1 or own_colors_of(graph) is not None)


def _is_picture(shape: Shape) -> bool:
    return len(shape) == 4 and shape[0] == 1 and shape[3] == 3


def _unknown(file: OpenModel) -> str:
    """Why no decoder takes a file, and what would help."""
    graph, no_picture = file.graph, _no_picture(file.graph)
    if no_picture:
        return no_picture
    outputs = [graph.tensors[place] for place in graph.outputs]
    listed = ", ".join(f"{tensor.name} {list(tensor.shape)}" for tensor in outputs[:_MOST_LISTED])
    more = ", …" if len(outputs) > _MOST_LISTED else ""
    task = file.options.task
    asked = f" as --task {task} has them" if task else ""
    size = input_size(graph.tensors[graph.inputs[0]].shape)
    if missed := missed_anchors([tensor.shape for tensor in outputs], size):
        listed = f"{missed}: {listed}"
    helps = "" if task else f"; --task {'|'.join(TASKS)} says more, texelflow.Program runs it in Python"
    return f"no decoder knows what its outputs mean{asked} ({listed}{more}){helps}"


def _no_picture(graph: Graph) -> str:
    """Why a network's input is no picture in color; "" where it is one."""
    sources = [graph.tensors[place] for place in graph.inputs]
    if len(sources) != 1 and (not sources or any(_is_picture(source.shape) for source in sources)):
        return f"it has {counted(len(sources), 'input')}; a network that finds things has one, a picture"
    source = sources[0]
    shape, said = source.shape, f"its {'input is' if len(sources) == 1 else 'first input is'} {source.dtype} "
    said += str(list(shape))
    if (_is_picture(shape) and min(shape) < 1) or shape == (1, 1, 1, 3):
        return f"{said}: its size is not fixed; convert it with one, such as [1, 256, 256, 3]"
    if _is_picture(shape):
        return ""
    if source.dtype in ("int32", "int64", "string") and len(shape) <= 2:
        return f"{said}: words of a text, not a picture; texelflow.Program runs it in Python"
    if len(shape) == 4 and shape[0] == 1 and shape[1] == 3:
        return f"{said}, with channels first; convert it with channels last, [1, H, W, 3]"
    if len(shape) <= 3 or shape[0] != 1:
        return f"{said}: sound, its features or other numbers, not a picture; texelflow.Program runs it in Python"
    if shape[3] == 1:
        return f"{said}: a gray picture, or features of sound; frames have three channels"
    return f"{said}; a picture is [1, H, W, 3]"


def _found(file: OpenModel) -> FindingModel | None:
    """The model with the first decoder that knows it; None where none does. Raises UnsupportedError, UsageError."""
    graph, task = file.graph, file.options.task
    if _no_picture(graph) or not graph.outputs:
        return None
    source = graph.tensors[graph.inputs[0]]
    try:
        size, metadata = input_size(source.shape), _metadata(file)
        facts = ModelFacts(file.name, graph, file.entry, metadata, size, task)
        asked = (decoder for decoder in DECODERS if task in (None, decoder.task))
        known = ((decoder, decoding) for decoder in asked if (decoding := decoder.decoding(facts)))
        decoder, decoding = next(known, (None, None))
        if decoder is None or decoding is None:
            return None
        input_range = _input_range(file, metadata, decoding.input_range)
        kept, reads = _with_outputs(graph, decoding.reads)
        return FindingModel(file.name, kept, reads, input_range, size, decoding, decoder.name, decoder.repeats_edges)
    except (UnsupportedError, UsageError) as error:
        raise type(error)(f"{file.name}: {error}") from error


def _input_range(file: OpenModel, metadata: ModelMetadata, of_family: InputRange | None) -> InputRange:
    """What black and white are: by the options, the metadata, the scale of bytes, the catalogue, the family.

    Metadata that says more than bytes can say is about the bytes themselves.
    """
    source, said, entry = file.graph.tensors[file.graph.inputs[0]], metadata.input_range, file.entry
    bytes_say = real_range(source)
    if said and bytes_say:
        room = 2 * (bytes_say[1] - bytes_say[0]) / 255
        said = said if bytes_say[0] - room <= said[0] and said[1] <= bytes_say[1] + room else bytes_say
    whole = (0.0, 255.0) if source.dtype in ("uint8", "int32") and bytes_say is None else None
    listed = entry.input_range if entry else of_family
    found = file.options.input_range or said or bytes_say or whole or listed
    if found is None:
        raise UsageError(_SAY_INPUT_RANGE)
    return found


def _with_outputs(graph: Graph, reads: tuple[int, ...]) -> tuple[Graph, tuple[int, ...]]:
    """The graph with these outputs alone, in this order, and their places in it.

    Where TensorFlow Lite alone computes the file, all outputs stay.
    """
    if graph.original:
        return graph, reads
    outputs = tuple(graph.outputs[place] for place in reads)
    return drop_unused(replace(graph, outputs=outputs))[0], tuple(range(len(reads)))


def _metadata(file: OpenModel) -> ModelMetadata:
    """What the file says of itself, with the labels of the first output that has some, or those of YOLO's exporter."""
    asked = range(min(len(file.graph.outputs), _MOST_ASKED))
    said = [read_metadata(file.data, file.name, file.graph, place, tells=False) for place in asked]
    labels = next((one.labels for one in said if one.labels), ()) or exported_labels(file.data)
    return replace(said[0], labels=labels) if said else ModelMetadata()

"""What a model's outputs mean to the program, in words: what is shown of it, by which decoder, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from texelflow.gpu_delegate.base.errors import ModelError, UnsupportedError, UsageError
from texelflow.gpu_delegate.base.wording import counted
from texelflow.gpu_delegate.model.graph import Graph, KeptState
from texelflow.gpu_delegate.reading.bundles import model_file_bytes

from .entries import ModelEntry
from .finding_loading import shown_model_of
from .finding_model import FindingModel
from .mattes import with_memory
from .model_loading import FrameModel, OpenModel, PictureModel, sized_graph
from .spec import SpecOptions

__all__ = ["Meaning", "model_meaning"]

_MOST_NAMED = 4  # classes, or states, in a line of text
_MOST_LETTERS = 40  # of one of them


@dataclass(frozen=True)
class Meaning:
    """What live and replay show of a model."""

    decoder: str | None  # None of a model that they do not show
    why: str  # or why they do not
    after: tuple[str, ...] = ()  # models that they run before it, to know where it is to look

    @property
    def line(self) -> str:
        """For people."""
        if not self.decoder:
            return f"not shown: {self.why}"
        first = f"; live and replay run {', then '.join(self.after)} before it" if self.after else ""
        return f"shown: {self.why} ({self.decoder}){first}"


def model_meaning(path: Path, entry: ModelEntry | None, graph: Graph) -> Meaning:
    """Of the model in a file, whose graph has been read."""
    name = entry.name if entry else graph.name
    try:
        data = model_file_bytes(path)
        graph = sized_graph(data, graph)
        model = shown_model_of(OpenModel(name, data, graph, entry, SpecOptions()))
    except (ModelError, UnsupportedError, UsageError) as error:
        return Meaning(None, str(error).removeprefix(f"{name}: ") + _kept_words(graph))
    if isinstance(model, FindingModel):
        return Meaning(model.decoder, model.decoding.why)
    of_masks = "matting" if model.graph.states or _has_own_colors(model) else "segmentation"
    return Meaning("picture" if isinstance(model, PictureModel) else of_masks, _frame_words(model, entry))


def _has_own_colors(model: FrameModel) -> bool:
    return not isinstance(model, PictureModel) and model.spec.has_own_colors


def _kept_words(graph: Graph) -> str:
    """What of a graph would be fed back from frame to frame, behind a reason why it is not shown; "" if nothing."""
    try:
        states = with_memory(graph).states
    except UnsupportedError:
        return ""
    return f"; it has {_states_words(states, graph)}" if states else ""


def _states_words(states: Sequence[KeptState], graph: Graph) -> str:
    """r1i from r1o, and so on."""
    pairs = [
        f"{state.name[:_MOST_LETTERS]} from {graph.tensors[state.written].name[:_MOST_LETTERS]}" for state in states
    ]
    more = ", …" if len(pairs) > _MOST_NAMED else ""
    return f"{counted(len(pairs), 'recurrent state')} ({', '.join(pairs[:_MOST_NAMED])}{more})"


def _frame_words(model: FrameModel, entry: ModelEntry | None) -> str:
    width, height = model.output_size
    by = "the catalogue" if entry else "its metadata and its output's shape"
    if isinstance(model, PictureModel):
        return f"a picture of {width}x{height}{', with transparency' if model.has_alpha else ''}, by {by}"
    kept = f"; {_states_words(model.graph.states, model.graph)}" if model.graph.states else ""
    if _has_own_colors(model):
        return f"an alpha of {width}x{height} with its own foreground, by its outputs' shapes{kept}"
    names = model.class_names
    more = ", …" if len(names) > _MOST_NAMED else ""
    listed = ", ".join(names[:_MOST_NAMED]) + more
    classes = "1 class" if len(names) == 1 else f"{len(names)} classes"
    return f"masks of {width}x{height} of {classes} ({listed}), by {by}{kept}"

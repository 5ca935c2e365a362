"""Opens the quickest way to run a model: the ways are measured beside each other where counting does not decide."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from ..base.errors import TexelflowError, UnsupportedError
from ..model.graph import Graph
from ..passes.kept_states import keeps_states
from ..reading.resizing import read_resized
from ..targets.llvm.pool import default_threads
from ..tuning.trial_inputs import drawn_input
from ..tuning.way_costs import GL_WAYS, RunChoice, WayName
from ..tuning.way_decision import OpenWay, WayDecision, decide_way
from ..tuning.way_times import WayRuns, gpu_signs
from .input_sizes import InputSizes
from .interpreter_options import RunOptions
from .model_source import ModelSource
from .run_way import RunWay
from .tflite_way import TfliteWay
from .turns import Turns

OpenChoice = Callable[[RunChoice], RunWay]  # raises UnsupportedError, DeviceError


def open_quickest(
    source: ModelSource,
    sizes: InputSizes,
    options: RunOptions,
    subgraph: int,
    open_choice: OpenChoice,
    runtime: str,
) -> tuple[RunWay, WayDecision]:
    """The way that is the quickest for a subgraph at its present sizes, ready, and why it is.

    `runtime` is TensorFlow Lite's package with its version, "" where there is none. Raises what the last way does that
    does not work, UnsupportedError where none does.
    """
    graph = _at_sizes(source, sizes, subgraph)
    facts: dict[str, object] = {"by": "interpreter", "runtime": runtime, "precision": options.precision}
    facts["functions"] = sorted(op.name for op in options.custom_ops)
    refused: dict[WayName, str] = {}
    while True:
        trials = _Trials(source, subgraph, open_choice)
        try:
            openers = {way: each for way, each in trials.openers(bool(runtime)).items() if way not in refused}
            decision = decide_way(
                graph, openers, "hardware" if gpu_signs() else "software", options.threads, default_threads(),
                options.exact, facts, refused,
            )  # fmt: skip
            kept = trials.take(decision.taken, keeps_states(graph))
        finally:
            trials.close()
        try:
            return kept or trials.opened(decision.taken), decision
        except TexelflowError as error:
            way = decision.taken.way
            if way.removesuffix(" parts") in refused or len(openers) == 1:
                raise
            refused[_plain(way)] = str(error)


class _Trials:
    """Ways that are open for their trials."""

    def __init__(self, source: ModelSource, subgraph: int, open_choice: OpenChoice) -> None:
        self._source, self._subgraph, self._open = source, subgraph, open_choice
        self._ways: dict[RunChoice, RunWay] = {}

    def openers(self, has_tflite: bool) -> dict[WayName, OpenWay]:
        """See decide_way."""

        def alone(numbers: Sequence[int]) -> WayRuns:
            return {choice: self._run(choice) for choice in (RunChoice("tflite", number) for number in numbers)}

        def ours(whole: WayName, in_parts: WayName) -> OpenWay:
            def opened(_: Sequence[int]) -> WayRuns:
                choice = RunChoice(whole)
                try:
                    return {choice: self._run(choice)}
                except UnsupportedError:
                    if not has_tflite:
                        raise
                choice = RunChoice(in_parts)
                return {choice: self._run(choice)}

            return opened

        found: dict[WayName, OpenWay] = {"tflite": alone} if has_tflite else {}
        return {**found, "native": ours("native", "native parts"), "gl": ours(*GL_WAYS)}

    def take(self, choice: RunChoice, has_states: bool) -> RunWay | None:
        """One that is open; None where there is none, or where its trials have changed what it keeps."""
        return None if has_states else self._ways.pop(choice, None)

    def opened(self, choice: RunChoice) -> RunWay:
        """Anew; a way that does not run all of the model, in parts. Raises UnsupportedError, DeviceError."""
        try:
            return self._open(choice)
        except UnsupportedError:
            if choice.way not in ("native", "gl"):
                raise
            return self._open(RunChoice("native parts" if choice.way == "native" else "gl parts"))

    def close(self) -> None:
        """All that were not taken."""
        for way in self._ways.values():
            with contextlib.suppress(TexelflowError):
                way.close()
        self._ways.clear()

    def _run(self, choice: RunChoice) -> Callable[[], object]:
        """What runs it once, from arrays to arrays."""
        way = self._ways[choice] = self._open(choice)
        number, details = self._subgraph, self._source.details(self._subgraph)
        way.allocate(number)
        inputs: list[tuple[int, Any]] = [
            (index, drawn_input(details.tensor(index, way.shape(number, index)))) for index in details.inputs
        ]
        give, invoke, take = _calls(way, number)

        def run() -> object:
            for index, values in inputs:
                give(index, values)
            invoke()
            return [take(index) for index in details.outputs]

        return run


def _calls(way: RunWay, subgraph: int) -> tuple[Callable[..., Any], Callable[[], Any], Callable[..., Any]]:
    """set_tensor, invoke and get_tensor, which take as long as those of the interpreter that will have the way."""
    turns = Turns()
    if isinstance(way, TfliteWay) and not subgraph:
        direct = way.direct_calls(turns)
        return direct["set_tensor"], direct["invoke"], direct["get_tensor"]

    def give(index: int, values: Any) -> None:
        with turns:
            way.set(subgraph, index, values)

    def invoke() -> None:
        with turns:
            way.invoke(subgraph)

    def take(index: int) -> Any:
        with turns:
            return way.get(subgraph, index)

    return give, invoke, take


def _plain(way: WayName) -> WayName:
    found: dict[WayName, WayName] = {"native parts": "native", "gl parts": "gl"}
    return found.get(way, way)


def _at_sizes(source: ModelSource, sizes: InputSizes, subgraph: int) -> Graph:
    """The graph, as far as it can be read for the sizes that were asked for."""
    graph = source.graph(subgraph)
    if resized := sizes.resized(subgraph):
        with contextlib.suppress(UnsupportedError):
            return read_resized(source.data, graph, resized)
    return graph

"""The tool `layers`: what is counted, who is compared with whom, tables, the picture, and how it ends."""

import contextlib
import importlib.util
import json
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive
from tests.tools.in_turn import call_in_turn
from tests.tools.layers import layer_times as verb
from tests.tools.layers.__main__ import main
from tests.tools.layers.contenders import XnnpackContender
from tests.tools.layers.layer_tables import show_layers
from tests.tools.layers.layer_times import LayersBench, bench_layers
from tests.tools.layers.retinaface_layers import (
    DEPTHWISE_IN_FLOATS,
    PAPER_LOOPS,
    ConvLayer,
    layers_of,
    retinaface,
    single_layers,
)
from tests.tools.layers.rivals import MODULES, parse_rivals, rival_maker
from tests.tools.layers.roofline_plot import save_roofline
from texelflow.app.console import Console, Report
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.model.graph import Graph

SHORT = 3
SIDE = 17  # odd maps from the first layer on, and a last one of a pixel
LARGE = {
    "3x3": ConvLayer("3x3", 8, 8, 2, 2048, 1024),
    "depthwise": ConvLayer("depthwise", 8, 8, 1, 1024, 1024),
    "pointwise": ConvLayer("pointwise", 8, 8, 1, 1024, 1024),
}


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first layers alone, one of each kind."""

    def cut(side: int) -> Graph:
        chain = retinaface(side)
        nodes = chain.nodes[:SHORT]
        return replace(chain, outputs=nodes[-1].outputs).with_changes(nodes)

    monkeypatch.setattr(verb, "retinaface", cut)


@pytest.fixture
def tool(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys, main)


@pytest.fixture
def picture() -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(1).random((1, SIDE, SIDE, 3), np.float32)


def test_the_papers_six_intensities() -> None:
    """Of maps so large that weights count for nothing."""
    kinds = ("3x3", "3x3", "depthwise", "depthwise", "pointwise", "pointwise")
    found = [PAPER_LOOPS[number].intensity(LARGE[kind]) for number, kind in enumerate(kinds, 1)]
    assert found == pytest.approx([0.45, 1.5, 0.5625, 2.0, 1 / 6, 2 / 3], rel=1e-4)
    assert DEPTHWISE_IN_FLOATS.intensity(LARGE["depthwise"]) == pytest.approx(1.5, rel=1e-4)


def test_layers_are_counted_as_they_are() -> None:
    found = layers_of(retinaface(320))
    assert len(found) == 27
    assert sum(layer.flops for layer in found) == 166_425_600
    first, second, third = found[:3]
    assert (first.name, second.name, third.name) == ("3x3 3->8 s2", "depthwise 8", "pointwise 8->16")
    assert first.cost.moved_bytes == 4 * (320 * 320 * 3 + 160 * 160 * 8 + 3 * 9 * 8 + 8)
    assert third.flops == 2 * 160 * 160 * 8 * 16
    assert second.intensity == pytest.approx(2.25, rel=1e-2)
    assert [layer.paper_intensity for layer in found[:3]] == pytest.approx([1.5, 2.0, 2 / 3], rel=1e-3)


def test_single_layers_make_the_chain(picture: np.ndarray[Any, np.dtype[np.float32]]) -> None:
    chain = retinaface(SIDE)
    values = picture
    for graph in single_layers(chain):
        alone = XnnpackContender(graph, "packed", 1)
        alone.write(values)
        values = alone.read()
    for form in ("packed", "planes"):
        whole = XnnpackContender(chain, form, 1)
        whole.write(picture)
        assert np.allclose(whole.read(), values, atol=1e-5)
    assert values.shape == (1, 1, 1, 256)
    assert values.max() > 0


@pytest.mark.parametrize("rival", MODULES)
def test_rivals_compute_the_same_or_are_told_how_to_get(
    rival: str, picture: np.ndarray[Any, np.dtype[np.float32]], tool: Command
) -> None:
    if importlib.util.find_spec(MODULES[rival]) is None:
        assert f"pip install {MODULES[rival]}" in tool("--against", rival).complaint
        return
    reference = XnnpackContender(retinaface(SIDE), "packed", 1)
    reference.write(picture)
    make, version = rival_maker(rival)
    assert MODULES[rival] in version
    for form in ("packed", "planes"):
        contender = make(retinaface(SIDE), form, 1)
        contender.write(picture)
        assert np.allclose(contender.read(), reference.read(), atol=1e-5)
        assert contender.run() is not None


def test_the_judge_is_always_among_the_rivals() -> None:
    assert parse_rivals(None)[0][0] == "xnnpack"
    assert parse_rivals("xnnpack") == (("xnnpack",), ())


def test_calls_come_in_turn_until_time_is_over() -> None:
    called: list[str] = []
    found = call_in_turn({"a": lambda: called.append("a"), "b": lambda: called.append("b")}, 1e-6)
    counts = {name: len(times.wall_s) for name, times in found.items()}
    assert called.index("b") == counts["a"] + 1, "one call to warm up, then those that count"
    assert len(called) == counts["a"] + counts["b"] + 2
    assert all(times.figures()["count"] == len(times.cpu_s) == counts[name] for name, times in found.items())
    assert all(seconds > 0 for times in found.values() for seconds in times.wall_s)
    assert not any(times.wall_s for times in call_in_turn({"a": lambda: None}, 1.0, is_over=lambda: True).values())


@exhaustive
@pytest.mark.usefixtures("short")
def test_it_measures_compares_and_shows(tool: Command, tmp_path: Path) -> None:
    result = tool("--sizes", SIDE, "--seconds", 1e-4, "--against", "xnnpack", "--markdown", "--json")
    assert result.code == 0
    figures = json.loads(result.out)
    found = figures["sizes"][str(SIDE)]
    assert len(found["layers"]) == SHORT
    for row in (found["chain"], *found["layers"]):
        assert row["errors"]["xnnpack"] == 0
        assert max(row["errors"].values()) < 1e-4
        assert all(0 < times["min_us"] <= times["median_us"] for times in row["times"].values())
    ways = {"native", "native from bytes", "xnnpack", "xnnpack from planes"}
    assert set(found["chain"]["times"]) == set(found["layers"][0]["times"]) == ways
    assert set(found["layers"][1]["times"]) == {"native", "xnnpack"}
    shown = tables(figures, tool)
    heads = [line for line in shown.splitlines() if line.startswith("|") and "-" not in line[1:3]]
    assert sum("pointwise 8->16" in line for line in heads) == 2, "its time, and its rates"
    assert "XNNPACK, from planes" in shown
    assert "largest error" in shown
    if importlib.util.find_spec("matplotlib") is None:
        with pytest.raises(UsageError, match="pip install matplotlib"):
            save_roofline(tmp_path / "r.svg", figures)
        assert "matplotlib" in tool("--plot", tmp_path / "r.svg").complaint
    else:
        save_roofline(tmp_path / "r.svg", figures)
        text = (tmp_path / "r.svg").read_text()
        assert text.startswith("<?xml")
        assert all(level in text for level in ("L1", "L2", "DRAM"))


def tables(figures: dict[str, Any], tool: Command) -> str:
    """What is printed of figures, in Markdown."""
    show_layers(figures, True, Console())
    return tool._captured.readouterr().out


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--sizes", text) for text in ("", "0", "320,", "a", "4000", "1" * 50, "-8")),
        ("--threads", 0),
        ("--threads", 65),
        ("--seconds", 0),
        ("--seconds", "nan"),
        ("--against", "nccn"),
        ("--against", ""),
        ("--plot", "layers.pdf"),
    ],
)
def test_bad_options_are_refused_at_once(option: str, value: object, tool: Command) -> None:
    assert option in tool(option, value).complaint


@pytest.mark.usefixtures("short")
def test_ctrl_c_keeps_what_is_measured(monkeypatch: pytest.MonkeyPatch, tool: Command) -> None:
    class Interrupting(Console):
        @contextlib.contextmanager
        def steps(self, what: str) -> Iterator[Report]:
            def report(done: int, total: int, what: str = what) -> None:
                if done == 2:
                    signal.raise_signal(signal.SIGINT)

            yield report

    monkeypatch.setattr(verb, "measure_roofs", lambda *_: None)
    figures, code = bench_layers(LayersBench("xnnpack", f"{SIDE},{SIDE + 2}", seconds=1e-4), Interrupting(quiet=True))
    assert code == 130
    assert list(figures["sizes"]) == [str(SIDE)]
    assert len(figures["sizes"][str(SIDE)]["layers"]) == 1
    assert "interrupted" in tables(figures, tool)

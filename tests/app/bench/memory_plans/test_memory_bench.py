"""`bench memory`: figures that others have published, what the compiler plans itself, tables, the picture, refusals."""

import importlib.util
import json
from pathlib import Path

import pytest

from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive
from texelflow.app.bench.memory_plans.memory_bench import MemoryBench, MemoryRow, bench_memory
from texelflow.app.bench.memory_plans.memory_records import SYNTHETIC, synthetic
from texelflow.app.bench.memory_plans.memory_tables import default_row, show_memory, tflite_row
from texelflow.app.bench.memory_plans.paper_tables import PAPER_NETWORKS, PAPER_ROWS, PUBLISHED
from texelflow.app.bench.memory_plans.strategy_plot import save_memory_bars
from texelflow.app.console import Console
from texelflow.app.models.networks import drawn
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.memory.memory_options import REWRITTEN
from texelflow.gpu_delegate.plan.memory.strategies import STRATEGIES
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

# (bytes, objects) by an independent implementation of TensorFlow Lite's planners. Those of v2 agree with what
# blog.tensorflow.org said in October 2020: about 26 MB in 65 buffers where nothing is shared, about 7 MB in 4.
KNOWN = {
    "mobilenet-v1": {
        "tensors": 30, "objects bound": 4816896, "offsets bound": 4816896, "offsets greedy-by-size": (4816896, 1),
        "objects naive": (20182856, 30), "objects equality": (9344840, 13), "objects greedy-in-order": (4816896, 2),
        "objects greedy-by-breadth": (4816896, 2), "objects greedy-by-size-improved": (4816896, 2),
    },
    "mobilenet-v2": {
        "tensors": 65, "objects bound": 6924288, "offsets bound": 6021120, "offsets greedy-by-size": (6021120, 1),
        "objects naive": (27591112, 65), "objects equality": (18396360, 35), "objects greedy-in-order": (8429568, 3),
        "objects greedy-by-breadth": (7225344, 4), "objects greedy-by-size-improved": (7024640, 4),
    },
}  # fmt: skip


FIELDS = {"network", "graph", "strategy", "kind", "bytes", "objects", "lower_bound_bytes", "ms", "proven", "default"}


@pytest.fixture(scope="module")
def rows() -> list[MemoryRow]:
    found, code = bench_memory(MemoryBench(tuple(KNOWN)), Console(quiet=True))
    assert code == 0
    return found


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@exhaustive
@pytest.mark.parametrize("network", KNOWN)
def test_operators_take_what_others_have_counted(network: str, rows: list[MemoryRow]) -> None:
    own = [row for row in rows if (row["network"], row["graph"]) == (network, "ops")]
    found = {f"{row['kind']} {row['strategy']}": (row["bytes"], row["objects"]) for row in own}
    found |= {f"{row['kind']} bound": row["lower_bound_bytes"] for row in own} | {"tensors": own[0]["tensors"]}
    assert KNOWN[network].items() <= found.items()


@exhaustive
def test_the_default_is_proven_and_never_larger_than_tensorflow_lites(rows: list[MemoryRow]) -> None:
    for network in KNOWN:
        for graph in ("ops", "fused"):
            own = [row for row in rows if (row["network"], row["graph"]) == (network, graph)]
            assert [(row["kind"], row["strategy"]) for row in own] == [(one.kind, one.name) for one in STRATEGIES]
            assert all(row["bytes"] >= row["lower_bound_bytes"] > 0 for row in own)
            ours, tflite = default_row(own), tflite_row(own)
            assert ours is not None
            assert tflite is not None
            assert ours["proven"]
            assert ours["bytes"] == min(row["bytes"] for row in own)
            assert (
                ours["bytes"]
                <= tflite["bytes"]
                <= min(row["bytes"] for row in own if row["kind"] == "objects" and "breadth" in row["strategy"])
            )


def test_fused_networks_take_what_the_compiler_plans(rows: list[MemoryRow]) -> None:
    compiled = compile_graph(drawn("mobilenet-v2").graph("mobilenet-v2"), SOFTWARE, CompileOptions(memory=REWRITTEN))
    own = [row for row in rows if (row["network"], row["graph"]) == ("mobilenet-v2", "fused")]
    ours = default_row(own)
    assert ours is not None
    assert (ours["bytes"], ours["tensors"]) == (compiled.plan.total_bytes, len(compiled.records))
    assert own[0]["programs"] == 1


def test_tables_and_the_picture(rows: list[MemoryRow], texelflow: Command, tmp_path: Path) -> None:
    show_memory(rows, True, Console())
    shown = texelflow._captured.readouterr().out
    assert "| mobilenet-v2 | 65      | 26.313 | 6.699  | 5.742 | 0.0%*" in shown
    assert "| greedy-by-size-improved | 4.594* (2)   | 6.699* (4)" in shown
    assert "ours is larger than TensorFlow Lite's default: nowhere" in shown
    show_memory(rows, False, Console())
    shown = texelflow._captured.readouterr().out
    assert "min-cost-flow-end-to-end" in shown
    assert "--markdown" not in shown
    show_memory([{**row, "network": f"{row['network']} {copy}"} for copy in range(3) for row in rows], False, Console())
    brief = texelflow._captured.readouterr().out
    assert "mobilenet-v2 2" in brief
    assert "by their names" in brief
    assert "end-to-end" not in brief, "a person reads it"
    picture = tmp_path / "memory.svg"
    if importlib.util.find_spec("matplotlib") is None:
        with pytest.raises(UsageError, match="pip install matplotlib"):
            save_memory_bars(picture, rows)
    else:
        save_memory_bars(picture, rows)
        assert all(name in picture.read_text() for name in (*KNOWN, "greedy-by-size (offsets)", "lower bound"))


def test_rows_are_a_list_in_json_and_bad_input_is_one_line(texelflow: Command) -> None:
    result = texelflow("bench", "memory", "mobilenet-v1", "--json")
    found = json.loads(result.out)
    assert set(found[0]) >= FIELDS, "what scripts rely on"
    assert [row["default"] for row in found].count(True) == 2
    complaint = texelflow("bench", "memory", "mobilenet-v3").complaint
    assert all(name in complaint for name in ("mobilenet-v3", "selfie", "mobilenet-v2")), "what there is"
    assert "--plot" in texelflow("bench", "memory", "--plot", "bars.pdf").complaint


def test_the_papers_tables_have_what_is_published_beside_each_cell(texelflow: Command) -> None:
    result = texelflow("bench", "memory", "--paper", "--markdown")
    assert result.code == 0
    rows = {line.split("|")[1].strip(): line for line in result.out.splitlines() if line.startswith("|")}
    assert "6.699* (4) [7, 4 buffers]" in rows["TensorFlow Lite's OpenGL"]
    assert all(f" {network} " in rows["strategy"] for network in PAPER_NETWORKS)
    assert rows["strip packing (1804.10001)"].count("*") == len(PAPER_NETWORKS) - 1, "all but BlazeFace"
    for kind, labels in PAPER_ROWS.items():
        known = {strategy.name for strategy in STRATEGIES if strategy.kind == kind}
        assert all(known.issuperset(strategies) for strategies in labels.values())
    for (kind, label, network), said in PUBLISHED.items():
        assert label in PAPER_ROWS[kind]
        assert network in PAPER_NETWORKS
        megabytes = float(said.split(",")[0])
        found = float(rows[label].split("|")[2 + PAPER_NETWORKS.index(network)].split()[0].strip("*"))
        assert abs(found - megabytes) < 0.5


def test_synthetic_records_overlap_as_in_networks() -> None:
    (records,) = synthetic().programs
    assert len(records) == SYNTHETIC
    assert all(record.first_task <= record.last_task for record in records)

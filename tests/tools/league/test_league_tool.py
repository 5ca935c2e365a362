"""The league: what a file holds, how outputs are compared, runs that go on, sums, and the document."""

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.commands import Command
from tests.model_files.model_builder import ModelBuilder
from tests.model_files.sketch import Sketch
from tests.tools.league.__main__ import main
from tests.tools.league.document import BEGIN, DOCUMENT, END, document_lines, write_document
from tests.tools.league.entrants import Entrant, contents_of, entrants
from tests.tools.league.judge import compared
from tests.tools.league.league import League, run_league
from tests.tools.league.origins import origins
from tests.tools.league.runs import MOST_INDEX, Draw, SkippedError, calls_of, started, with_open_sizes
from tests.tools.league.standings import apart, best, changes, failures, is_apart, standing, summary
from tests.tools.league.trials import UNPAID, Bounds, Figures, general, measured, step_in_child
from texelflow.gpu_delegate.delegate.selection import COSTS_MORE

ROOT = Path(__file__).parents[3]
QUICK = Bounds(60.0, times_s=0.01)


def detail(shape: tuple[int, ...], dtype: type, scale: float = 0.0, index: int = 0) -> dict[str, Any]:
    return {"shape": np.array(shape), "dtype": dtype, "quantization": (scale, 0), "index": index}


def row_of(name: str = "a", nodes: int = 4, taken: int = 4, **more: Any) -> Figures:
    """That of a model of which OpenGL takes so many nodes, and native code all but one of them."""
    file = {"nodes": nodes, "types": ["1 float32", "1 int8"], "custom": [], "flex": [], "signatures": []}
    way = {"taken": taken, "partitions": 1, "left": {}, "refused": "", "ready_s": 2.0, "warm": {"ready_s": 1.0}}
    same = {"error": None, "equal": 1.0, "step": 0, "bytes": 1, "same": 1}
    return {
        "name": name, "sha256": "0" * 16, "size": 9000, "catalogue": False, "file": file | {"has_states": False},
        "reference": {}, "xnnpack": {}, "gl": way, "native": way | {"taken": max(0, taken - 1)},
        "compared": {"gl reference": same, "native reference": {**same, "equal": 0.75, "step": 2, "same": 0}},
        "ms": {"gl": 3.0}, **more,
    }  # fmt: skip


def write_model(path: Path) -> Entrant:
    model = Sketch(1)
    model.output(model.unary("RELU", model.conv(model.image(9, 7, 3), 5, (3, 3))))
    path.write_bytes(model.build())
    (found,) = entrants([path.parent], [], with_catalogue=False)
    return found


class TestFiles:
    def test_models_of_folders_below(self, tmp_path: Path) -> None:
        below = tmp_path / "one" / "two"
        below.mkdir(parents=True)
        write_model(below / "small.tflite")
        (found,) = entrants([tmp_path], ["two/sm"], with_catalogue=False)
        assert (found.name, len(found.sha256), found.is_catalogued) == ("one/two/small", 16, False)
        assert not [*entrants([tmp_path], ["other"], with_catalogue=False)]

    def test_custom_ops_that_nobody_knows_and_those_of_tensorflow(self, tmp_path: Path) -> None:
        model = ModelBuilder()
        x = model.op("NobodyHasThis", [model.input((1, 4))], (1, 4))
        x = model.op("FlexErf", [x], (1, 4))
        model.output(model.op("Convolution2DTransposeBias", [x], (1, 4)))
        (path := tmp_path / "odd.tflite").write_bytes(model.build())
        found = contents_of(path)
        assert (found.custom, found.flex, found.nodes) == (("NobodyHasThis",), ("FlexErf",), 3)
        assert found.types == ("1x4 float32", "1x4 float32")
        assert not found.has_states

    def test_floats_that_become_bytes_at_once_have_their_range(self, tmp_path: Path) -> None:
        model = ModelBuilder()
        given = model.input((1, 4))
        made = model.tensor((1, 4), "int8", scales=(0.5,), zero_points=(-128,))
        model.op_of("QUANTIZE", [given], [made])
        model.output(made)
        (path := tmp_path / "steps.tflite").write_bytes(model.build())
        assert contents_of(path).quantized == {given: (0.0, 127.5)}

    def test_sizes_that_are_left_open(self, tmp_path: Path) -> None:
        small = write_model(tmp_path / "small.tflite")
        assert not contents_of(small.path).has_open_sizes
        assert with_open_sizes(small.path, 16) == {}
        model = ModelBuilder()
        model.inputs.append(given := model.tensor((1, 1, 4), "float32", signature=(-1, -1, 4)))
        model.output(model.op("NEG", [given], (1, 1, 4)))
        (path := tmp_path / "open.tflite").write_bytes(model.build())
        assert contents_of(path).has_open_sizes
        assert with_open_sizes(path, 16) == {given: (1, 16, 4)}
        interpreter, _ = started("xnnpack", path, with_open_sizes(path, 16))
        (arrays,) = Draw((0.0, 1.0), {}).outputs(calls_of(interpreter, ()), 1)
        assert arrays[0].shape == (1, 16, 4)

    def test_origins_are_of_beginnings_of_checksums(self) -> None:
        known = origins()
        assert len(known) >= 30
        assert all(len(each) == 16 and int(each, 16) and known[each].licence for each in known)


class TestInputs:
    def test_they_are_the_same_for_each_way_and_within_bounds(self) -> None:
        inputs = [detail((2, 3), np.float32), detail((50,), np.int32), detail((50,), np.int16, 0.1), detail((), bool)]
        inputs.append(detail((3,), np.float32, index=1))
        one, other = (Draw((0.0, 2.0), {1: (5.0, 6.0)}).inputs(inputs, 4) for _ in range(2))
        assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(one, other, strict=True))
        assert 0 <= one[0].min() <= one[0].max() <= 2
        assert 5 <= one[4].min() <= one[4].max() <= 6
        assert set(one[1]) == set(range(MOST_INDEX + 1))
        assert np.abs(one[2]).max() > 1000
        odd = Draw((0.0, 2.0), {}).inputs([detail((99,), np.float32), detail((99,), np.int8)], 5)
        assert np.ptp(odd[0]) <= 0.6
        assert np.ptp(odd[1].astype(int)) <= 77

    def test_texts_are_not_run(self) -> None:
        class Texts:
            invoke = None

            def get_input_details(self) -> list[dict[str, Any]]:
                return [detail((1,), np.bytes_)]

        with pytest.raises(SkippedError, match="an input of texts: not run"):
            calls_of(Texts(), ())


class TestComparison:
    def test_floats_by_the_range_of_all_runs(self) -> None:
        wanted = [[np.array([0, 1], np.float32)], [np.array([3, 5], np.float32)]]
        found = compared([[wanted[0][0] + np.float32(0.5)], wanted[1]], wanted)
        assert found["error"] == pytest.approx(0.1)
        assert found["equal"] is None

    def test_bytes_by_share_and_step(self) -> None:
        wanted = [[np.array([1, 2, 250, 4], np.uint8), np.array([7], np.int8)]]
        found = compared([[np.array([1, 2, 255, 4], np.uint8), np.array([7], np.int8)]], wanted)
        assert (found["equal"], found["step"], found["bytes"], found["same"]) == (0.8, 5, 2, 1)
        assert apart(found) == "80.00%, 5"
        assert not found["flat"]
        zeros = [[np.zeros(3, np.float32)]]
        assert apart(compared(zeros, zeros)) == "0 (of one value)"

    def test_what_is_not_finite_has_to_be_so_in_both(self) -> None:
        odd, even = np.array([np.nan, np.inf, 1], np.float32), np.array([np.nan, 2, 1], np.float32)
        assert compared([[odd]], [[odd]])["error"] == 0
        assert compared([[odd]], [[even]])["error"] == float("inf")
        assert compared([[even]], [[odd]])["error"] == float("inf")

    def test_other_shapes_are_told(self) -> None:
        found = compared([[np.zeros((2, 1), np.int8)]], [[np.zeros(2, np.int8)]])
        assert found == {"apart": "an output is 2x1 int8, not 2 int8"}

    def test_nearly_all_is_not_all(self) -> None:
        assert apart({"error": None, "equal": 0.999999, "step": 1}) == "99.99%, 1"
        assert apart({"error": 0.0, "equal": 1.0, "step": 0}) == "0; equal"
        assert apart(None) == "-"


class TestSteps:
    @pytest.mark.gl
    def test_a_model_that_runs_whole(self, tmp_path: Path) -> None:
        """By the command: this process may have threads of OpenGL's, which its children would lack."""
        write_model(tmp_path / "small.tflite")
        options = ("--no-catalogue", "--folder", tmp_path, "--file", tmp_path / "league.json", "--times", "0.01")
        command = [sys.executable, "-m", "tests.tools.league", *map(str, options)]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        row = League.read(tmp_path / "league.json").rows["small"]
        assert standing(row, "gl") == standing(row, "native") == "whole"
        assert not failures(row)
        assert max(row["compared"][pair]["error"] for pair in ("gl reference", "native xnnpack")) < 1e-5
        assert row["gl"]["runs"] == 4
        assert row["ms"].keys() == {"gl", "native", "xnnpack", "auto"}
        assert row["gl"]["warm"]["ready_s"] > 0

    def test_a_damaged_file_is_a_row(self, tmp_path: Path) -> None:
        (path := tmp_path / "bad.tflite").write_bytes(b"\x10\0\0\0TFL3" + bytes(range(200)))
        row = measured(Entrant("bad", path, "0" * 16, 208, False), tmp_path / "work", QUICK)
        assert row["file"]["failed"].startswith("raised: ")
        assert best(row) == "refused"
        assert len(failures(row)) == 1

    @pytest.mark.parametrize(
        ("work", "said"),
        [
            (lambda: os.kill(os.getpid(), signal.SIGKILL), "crashed: SIGKILL"),
            (lambda: [None for _ in iter(int, 1)], "more than 0.2 CPU s"),
            (lambda: {"x": 1 // 0}, "raised: ZeroDivisionError: integer division or modulo by zero"),
        ],
    )
    def test_what_crashes_or_hangs_is_told(self, tmp_path: Path, work: Any, said: str) -> None:
        assert step_in_child(work, tmp_path, replace(QUICK, cpu_s=0.2)) == {"failed": said}

    def test_reasons_that_differ_in_numbers_are_one(self) -> None:
        assert general("tensor 12 is int16") == general("tensor 3 is int16") == "a tensor is int16"
        assert general(f"{COSTS_MORE}1.2 ms against 0.3 ms") == UNPAID


class TestRuns:
    def run(self, file: Path, names: str, stop_at: str = "", **options: Any) -> tuple[League, list[str]]:
        """A run over models of these names, which is interrupted at one of them."""
        measured_names = list[str]()

        def measure(entrant: Entrant, _: Path, __: Bounds) -> Figures:
            if entrant.name == stop_at:
                raise KeyboardInterrupt
            measured_names.append(entrant.name)
            return row_of(entrant.name) | {"sha256": entrant.sha256}

        chosen = [Entrant(name, Path(name), name * 16, 9000, False) for name in names]
        with contextlib.suppress(KeyboardInterrupt):
            run_league(chosen, file, tell=lambda _: None, measure=measure, **options)
        return League.read(file), measured_names

    def test_an_interrupted_run_goes_on(self, tmp_path: Path) -> None:
        file = tmp_path / "league.json"
        league, names = self.run(file, "abc", stop_at="b")
        assert (names, league.is_whole, [*league.rows]) == (["a"], False, ["a"])
        league, names = self.run(file, "abc")
        assert (names, league.is_whole, [*league.rows], league.before) == (["b", "c"], True, ["a", "b", "c"], {})

    def test_a_whole_run_is_what_the_next_one_is_compared_with(self, tmp_path: Path) -> None:
        file = tmp_path / "league.json"
        self.run(file, "abc")
        league, names = self.run(file, "b")
        assert names == ["b"]
        assert ([*league.rows], [*league.before]) == (["a", "c", "b"], ["a", "b", "c"])
        league, names = self.run(file, "abc", stop_at="c", is_anew=True)
        assert (names, league.is_whole) == (["a", "b"], False)
        assert [*league.before] == ["a", "c", "b"]


class TestStandings:
    @pytest.mark.parametrize(
        ("row", "gl", "either"),
        [
            (row_of(taken=4), "whole", "whole"),
            (row_of(taken=2), "part", "part"),
            (row_of(gl={"taken": 3, "by_function": 1}), "whole", "whole"),
            (row_of(taken=0, gl={"taken": 0, "by_function": 4, "refused": ""}), "none", "none"),
            (row_of(taken=0), "none", "none"),
            (row_of(gl={"taken": 0, "refused": "damaged"}), "refused", "part"),
            (row_of(gl={"failed": "crashed: SIGSEGV"}), "refused", "part"),
            (row_of(gl={"failed": "a run: no", "taken": 4}), "refused", "part"),
        ],
    )
    def test_how_a_model_runs(self, row: Figures, gl: str, either: str) -> None:
        assert standing(row, "gl") == gl
        assert best(row) == either

    def test_sums(self) -> None:
        apart_row = row_of("custom")
        apart_row["file"] = apart_row["file"] | {"custom": ["Odd"]}
        late = row_of("late", taken=2)
        late["gl"] = late["gl"] | {"ready_s": 12.5}
        rows = [row_of(), apart_row, late, row_of("tiny", size=900)]
        found = summary(rows)
        assert is_apart(apart_row)
        assert (found.models, found.apart, found.nodes) == (2, 1, 8)
        assert found.standings["either"] == {"whole": 1, "part": 1}
        assert found.taken == {"gl": 6, "native": 4, "either": 6}
        assert (found.cold, found.late) == ((12.5, "late", "gl"), ["late"])
        assert (found.bytes_of, found.same) == (4, {"gl": 4, "native": 0, "xnnpack": 0})

    def test_changes(self) -> None:
        assert changes(row_of(), None) == "new"
        assert changes(row_of(), row_of(ms={})) == ""
        assert changes(row_of(), row_of(taken=2)) == ("OpenGL: part (2) -> whole (4); native: part (1) -> part (3)")
        before = row_of()
        before["compared"] = {"gl reference": before["compared"]["native reference"]}
        assert changes(row_of(), before) == "OpenGL: 75.00%, 2 -> equal"


class TestDocument:
    def test_tables_stand_between_the_marks(self, tmp_path: Path) -> None:
        league = League({"a": row_of(), "b|c": row_of("b|c")}, {"a": row_of(taken=1), "gone": row_of("gone")})
        (path := tmp_path / "models.md").write_text(f"before\n{BEGIN}\nstale\n{END}\nbehind\n")
        write_document(league, path)
        text = path.read_text()
        assert text.startswith("before\n")
        assert text.endswith("behind\n")
        assert "stale" not in text
        assert "| b\\|c | 1 float32 -> 1 int8 | 4 | all | 3 |" in text
        assert "* gone: not in this run" in text
        assert "* a: OpenGL: part (1) -> whole (4); native: none (0) -> part (3)" in text
        for lines in text.split("\n\n"):
            tables = [line for line in lines.splitlines() if line.startswith("|")]
            assert len({line.replace("\\|", "").count("|") for line in tables}) <= 1

    def test_one_without_marks_is_left_alone(self, tmp_path: Path) -> None:
        (path := tmp_path / "models.md").write_text("nothing")
        with pytest.raises(ValueError, match="does not have the marks"):
            write_document(League({"a": row_of()}), path)
        assert path.read_text() == "nothing"

    def test_the_one_in_the_repository_has_them(self) -> None:
        text = (ROOT / DOCUMENT).read_text(encoding="utf-8")
        assert text.index(BEGIN) < text.index(END)

    def test_rows_of_failures_have_their_reasons(self) -> None:
        row = {"name": "bad", "sha256": "0" * 16, "size": 9000, "catalogue": False, "file": {"failed": "raised: <x>"}}
        text = "\n".join(document_lines(League({"bad": row})))
        assert "raised: &lt;x>" in text


def test_the_command_shows_what_was_measured(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    League({"a": row_of()}).write(tmp_path / "league.json")
    result = Command(capsys, main)("--show", "--file", tmp_path / "league.json")
    assert result.code == 0
    assert "| a | 1 float32 -> 1 int8 | 4 | all | 3 |" in result.out

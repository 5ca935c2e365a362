"""Plots of milliseconds over time: what is where in the text, and the picture where matplotlib is installed."""

import importlib.util
from pathlib import Path

import cv2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from texelflow.app.bench.measuring.run_rule import Runs
from texelflow.app.bench.measuring.time_plot import save_plot, text_plot
from texelflow.app.bench.model_times.model_figures import series_figures
from texelflow.app.plots import NO_MATPLOTLIB, check_matplotlib
from texelflow.gpu_delegate.base.errors import UsageError

TIMES = st.lists(st.floats(0.001, 1e5), min_size=1, max_size=300)


def series(times_ms: list[float]) -> Runs:
    """Runs that follow each other at once."""
    runs, at_s = Runs(), 0.0
    for time_ms in times_ms:
        runs.at_s.append(at_s)
        runs.ms.append(time_ms)
        at_s += time_ms / 1e3
    return runs


@given(TIMES, st.integers(1, 200), st.integers(2, 30))
def test_any_series_fits_its_place(times_ms: list[float], columns: int, rows: int) -> None:
    runs = series(times_ms)
    lines = text_plot(runs.at_s, runs.ms, columns, rows)
    assert len(lines) == rows + 2
    assert max(map(len, lines)) <= max(columns, 32)
    assert sum(line.count("*") for line in lines) >= 1


def test_slower_runs_stand_higher() -> None:
    runs = series([5.0] * 100 + [10.0] * 100)
    lines = text_plot(runs.at_s, runs.ms, 80, 10)
    marked = {line.index("*"): row for row, line in enumerate(lines) if "*" in line}
    assert marked[max(marked)] < marked[min(marked)], "the second half, to the right, is further up"
    assert "10" in lines[1] or "10" in lines[0]
    assert lines[-1].split() == ["0", "s", "1.49", "s"]


def test_one_slow_run_leaves_the_scale_to_the_others() -> None:
    runs = series([5.0] * 500 + [9000.0] + [5.0] * 500)
    lines = text_plot(runs.at_s, runs.ms, 80, 10)
    assert float(lines[0].split()[0]) < 10
    assert lines[0].count("^") == 1


@given(TIMES, st.integers(1, 50))
def test_a_long_series_is_summed_up(times_ms: list[float], most: int) -> None:
    found = series_figures(series(times_ms), most)
    assert len(found["ms"]) == len(found["at_s"]) <= most
    each = found["runs_per_point"]
    counts = [min(each, len(times_ms) - start) for start in range(0, len(times_ms), each)]
    total = sum(count * mean for count, mean in zip(counts, found["ms"], strict=True))
    assert total == pytest.approx(sum(times_ms), rel=1e-3, abs=len(times_ms) * 1e-4)


def test_the_picture_is_drawn_or_says_what_to_install(tmp_path: Path) -> None:
    figures = {
        "model": "m",
        "backend": "gl",
        "renderer": "r",
        "count": 100,
        "series": series_figures(series([5.0, 6.0] * 50)),
    }
    if importlib.util.find_spec("matplotlib") is None:
        with pytest.raises(UsageError, match="pip install"):
            check_matplotlib()
        assert "pip install matplotlib" in NO_MATPLOTLIB
    else:
        save_plot(tmp_path / "p.png", figures)
        picture = cv2.imread(str(tmp_path / "p.png"))
        assert picture is not None
        assert min(picture.shape[:2]) > 400
        assert len({*map(tuple, picture.reshape(-1, 3))}) > 3

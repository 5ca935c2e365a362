"""`texelflow bench gpu`: a report of this machine, whatever fails, crashes or is interrupted, without personal data."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive
from texelflow.app.bench.gpu_report import gpu_bench
from texelflow.app.bench.gpu_report.gpu_bench import GpuBench, bench_gpu, litert_refusal
from texelflow.app.bench.gpu_report.gpu_page import renderer_of, report_page
from texelflow.app.bench.gpu_report.gpu_plan import LEAST_S, MOST_S, SECTIONS, allowance_s, chosen_sections, planned
from texelflow.app.bench.gpu_report.gpu_privacy import REMOVED, PersonalWords, without_personal
from texelflow.app.bench.gpu_report.gpu_tables import TABLES, tables_of
from texelflow.app.bench.measuring import measuring_process
from texelflow.app.bench.measuring.cpu_peak import cpu_facts
from texelflow.app.bench.measuring.energy import energy_counters, spent_j
from texelflow.app.console import Console
from texelflow.gpu_delegate.base.errors import UsageError

DOCUMENT = (Path(__file__).parents[4] / "docs" / "gpu_report.md").read_text(encoding="utf-8")
ABORTS = "import os; os.abort()"
MODELS = st.lists(st.sampled_from(["face-landmark", "selfie", "pose-landmark", "selfie-landscape"]), unique=True)


@given(MODELS, st.floats(5, 3600))
def test_something_of_every_section_comes_before_all_of_any(models: list[str], budget_s: float) -> None:
    plan = planned(SECTIONS, models, ("mobilenet-v1",), budget_s)
    assert len({(each.section, each.name) for each in plan}) == len(plan)
    assert [each.round for each in plan] == sorted(each.round for each in plan)
    if "selfie" in models or "selfie-landscape" in models:
        assert {each.section for each in plan if each.round == 0} == {section.name for section in SECTIONS}
    for model in models:
        assert {f"{model}, gpu", f"{model}, cpu"} <= {each.name for each in plan if each.section == "models"}


@given(st.floats(-10, 4000))
def test_no_measurement_takes_all_the_time(left_s: float) -> None:
    found = allowance_s(left_s)
    assert found == 0 if left_s < LEAST_S else LEAST_S <= found <= min(left_s, MOST_S)


def test_sections_are_chosen_by_name() -> None:
    assert [section.name for section in chosen_sections("peaks, doctor")] == ["doctor", "peaks"]
    with pytest.raises(
        UsageError, match=r"--only modles: no such section; there are doctor, .*; did you mean models\?"
    ):
        chosen_sections("modles")
    assert set(TABLES) == {section.name for section in SECTIONS}


JSON = (
    st.none() | st.integers() | st.lists(st.text(max_size=20), max_size=3) | st.dictionaries(st.text(), st.booleans())
)
PERSONAL = ("/home/anna/films", "anna", "annas-laptop", "GPU-8f6d3a52-0c1b-11ee-be56-0242ac120002", "02:42:ac:12:00:02")


@given(JSON, st.sampled_from(PERSONAL))
def test_nothing_personal_is_left(value: Any, secret: str) -> None:
    words = PersonalWords(("/home/anna",), ("annas-laptop", "anna"))
    cleaned = json.dumps(without_personal({"all": value, secret: [f"of {secret}: {secret}/x", {"a": secret}]}, words))
    assert REMOVED in cleaned
    assert not re.search(r"\banna|8f6d3a52|02:42", cleaned)


def test_what_is_not_personal_stays() -> None:
    words = PersonalWords((), ("anna",))
    lines = [
        "NVIDIA 535.104.05",
        "4.6.0 Build 31.0.101.4502",
        "Mesa 25.0.7",
        "only root may read",
        "savannah",
        "opencv 4.13.0.92",
    ]
    assert without_personal(lines, words) == lines
    assert without_personal("Serial number: 4711 on 192.168.1.7", words) == f"{REMOVED} on {REMOVED}"


@exhaustive
@pytest.mark.gl
def test_a_short_report_of_this_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON is as it is documented; the archive holds both files; a report that is there is not written over."""
    folder, texelflow = tmp_path / "out", Command(capsys)
    result = texelflow("bench", "gpu", "--report", folder, "--budget", "60s", "--only", "device,peaks", "--json")
    assert result.code == 0, result.err
    report = json.loads((folder / "report.json").read_text())
    assert json.loads(result.out)["spent_s"] == report["spent_s"]
    (device,), (peaks,) = (report["sections"][name]["measurements"] for name in ("device", "peaks"))
    assert device["reason"] == peaks["reason"] == ""
    assert device["figures"]["clock"]["kind"] in ("glFinish", "time stamps")
    assert peaks["figures"]["gpu_fp32_gflops"] > 0 < peaks["figures"]["cpu_fp32_gflops"]
    for key in (*report, *report["system"], *device, *(section.name for section in SECTIONS)):
        assert f"`{key}`" in DOCUMENT, key
    assert device["figures"]["renderer"] in (folder / "report.html").read_text()
    with zipfile.ZipFile(folder / "report.zip") as archive:
        assert sorted(archive.namelist()) == ["report.html", "report.json"]
        assert json.loads(archive.read("report.json")) == report
    assert "--force" in texelflow("bench", "gpu", "--report", folder, "--only", "device").complaint


def test_what_there_is_no_time_for_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_bench, "allowance_s", lambda left_s: 0.0)
    report, _ = bench_gpu(GpuBench(tmp_path, 30, only="peaks,peers"), Console(quiet=True))
    assert report["sections"]["peaks"]["left_out"] == ["peaks"]
    left_out = "; ".join(report["sections"]["peers"]["left_out"])
    assert left_out
    page = (tmp_path / "report.html").read_text()
    assert "left out: peaks<" in page
    assert f"left out: {left_out}<" in page


@pytest.mark.parametrize("budget", ["4s", "200m", "1.x"])
def test_a_budget_is_some_seconds(budget: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = Command(capsys)("bench", "gpu", "--report", tmp_path / "out", "--budget", budget)
    assert "--budget" in result.complaint


def test_what_crashes_is_a_line_and_the_rest_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring_process, "VERB", ABORTS)
    report, code = bench_gpu(GpuBench(tmp_path, 30, only="doctor,waits,live"), Console(quiet=True))
    measured = [each for section in report["sections"].values() for each in section["measurements"]]
    assert code == 0
    assert [each["reason"] for each in measured] == ["ended by signal 6"] * 3
    assert "ended by signal 6" in (tmp_path / "report.html").read_text()


def test_ctrl_c_keeps_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupts = "(os.kill(os.getppid(), signal.SIGINT), time.sleep(60))"
    program = f"import os, signal, sys, time; 'waits' in sys.argv and {interrupts}; print('{{\"findings\": []}}')"
    monkeypatch.setattr(measuring_process, "VERB", program)
    report, code = bench_gpu(GpuBench(tmp_path, 30, only="doctor,waits,live"), Console(quiet=True))
    assert code == 130
    stored = json.loads((tmp_path / "report.json").read_text())
    assert stored["interrupted"] is True
    assert stored["sections"]["doctor"]["measurements"][0]["figures"] == {"findings": []}
    assert stored["sections"]["live"] == {**report["sections"]["live"], "measurements": []}
    assert stored["sections"]["waits"]["measurements"] == []  # ended, not failed
    assert stored["sections"]["waits"]["left_out"]
    assert {"report.html", "report.zip"} <= {path.name for path in tmp_path.iterdir()}


def test_figures_cut_short_do_not_end_the_page() -> None:
    measured = {"name": "a", "reason": "", "figures": {"renderer": "<b>"}}
    section = {"title": "<i>", "measurements": [measured], "left_out": []}
    system = {"platform": "p", "cpus": 2, "python": "3"}
    report = {"texelflow": "0", "day": "d", "spent_s": 1.0, "budget_s": 2.0, "interrupted": False, "system": system}
    page = report_page({**report, "sections": {"device": section}})
    assert "no table of these figures" in page
    assert not any(tag in page for tag in ("<b>", "<i>"))


def test_the_page_names_the_gpu_by_what_doctor_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the limits hold no row without a value."""
    finding = {"topic": "OpenGL", "name": "renderer", "state": "ok", "found": "Voodoo 3, 3dfx", "advice": ""}
    monkeypatch.setattr(measuring_process, "VERB", f"print({json.dumps(json.dumps({'findings': [finding]}))})")
    report, _ = bench_gpu(GpuBench(tmp_path, 30, only="doctor"), Console(quiet=True))
    assert renderer_of(report) == "Voodoo 3, 3dfx"
    figures: dict[str, Any] = {
        **dict.fromkeys(("renderer", "vendor", "gl_version", "family"), ""),
        "cpu": {"name": ""},
        "extensions": [],
        "gpu_memory": None,
        "clock": {"kind": "", "reason": ""},
        "limits": {"half_arithmetic": "", "shared_bytes": 0},
    }
    _, limits = tables_of("device", [{"figures": figures}])
    assert limits.rows == (("shared bytes", "0"),)


def test_peers_are_an_interpreter_that_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = Command(capsys)("bench", "gpu", "--report", tmp_path / "out", "--peers", tmp_path / "python")
    assert "--peers" in result.complaint
    assert not (tmp_path / "out").exists()


def test_joules_are_counted_over_the_end_of_a_counters_range(tmp_path: Path) -> None:
    domain = tmp_path / "intel-rapl:0"
    domain.mkdir()
    for name, content in {"name": "package-0\n", "max_energy_range_uj": "5000000\n", "energy_uj": "4500000\n"}.items():
        (domain / name).write_text(content)
    counters, reasons = energy_counters(tmp_path)

    def work() -> None:
        (domain / "energy_uj").write_text("250000\n")

    spent = spent_j(counters[:1], work)
    assert spent == {"package-0 (intel-rapl:0)": 0.75}
    assert not any("RAPL" in reason for reason in reasons)
    (domain / "energy_uj").write_text("no number")
    assert any("RAPL, intel-rapl:0" in reason for reason in energy_counters(tmp_path)[1])


def test_a_cpu_is_known_by_what_linux_says() -> None:
    x86 = "processor\t: 0\nmodel name\t: Xeon 6\nflags\t\t: sse avx512_fp16 avx2\n"
    arm = "Features\t: fp asimd\nModel\t\t: Raspberry Pi 4 Model B\nSerial\t\t: 4711\n"
    assert cpu_facts(x86) == {"name": "Xeon 6", "has_half_arithmetic": True}
    assert cpu_facts(arm) == {"name": "Raspberry Pi 4 Model B", "has_half_arithmetic": False}
    assert cpu_facts("")["has_half_arithmetic"] is None


@pytest.mark.parametrize(
    ("driver", "refused"),
    [("OpenGL 4.5 (Core Profile) Mesa 22.3.6", True), ("4.6 Mesa 25.0.7-2", False), ("4.6.0 NVIDIA 535.1", False)],
)
def test_litert_is_tried_where_its_driver_can_be(driver: str, refused: bool) -> None:
    assert bool(litert_refusal(driver)) is refused

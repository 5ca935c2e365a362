"""Energy by counters of a folder as Linux' powercap has it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from texelflow.app.bench.measuring import energy
from texelflow.app.bench.measuring.energy import EnergyMeter, energy_counters, energy_figures, energy_line


class Zones:
    """A folder of zones: names, ranges and microjoules."""

    def __init__(self, folder: Path, zones: Mapping[str, str]) -> None:
        self.folder = folder
        for zone, name in zones.items():
            (folder / zone).mkdir()
            (folder / zone / "name").write_text(f"{name}\n")
            (folder / zone / "max_energy_range_uj").write_text("1000000\n")
            self.set(zone, 0)

    def set(self, zone: str, microjoules: object) -> None:
        (self.folder / zone / "energy_uj").write_text(f"{microjoules}\n")


@pytest.fixture
def clock_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(energy, "perf_counter", lambda: now[0])
    return now


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(energy, "load_library", missing)


def test_packages_and_memory_are_summed_and_nothing_twice(tmp_path: Path, clock_s: list[float]) -> None:
    names = {
        "intel-rapl:0": "package-0", "intel-rapl:0:0": "core", "intel-rapl:0:1": "dram",
        "intel-rapl:1": "package-1", "intel-rapl:1:0": "uncore", "intel-rapl:2": "psys",
        "intel-rapl-mmio:0": "package-0",
    }  # fmt: skip
    zones = Zones(tmp_path, names)
    counters, reasons = energy_counters(tmp_path)
    assert len(counters) == 6, "what is there twice, as memory-mapped registers, is counted once"
    meter = EnergyMeter(counters)
    for zone, microjoules in zip(names, (300_000, 200_000, 40_000, 60_000, 50_000, 500_000), strict=False):
        zones.set(zone, microjoules)
    clock_s[0] += 2.0
    meter.stop()
    figures = energy_figures(counters, reasons, meter, 4)
    assert figures["j_per_run"] == pytest.approx(0.1)
    assert figures["mean_w"] == pytest.approx(0.2)
    assert {each["name"]: each["in_sum"] for each in figures["counters"]} == {
        "package-0 (intel-rapl:0)": True, "core (intel-rapl:0:0)": False, "dram (intel-rapl:0:1)": True,
        "package-1 (intel-rapl:1)": True, "uncore (intel-rapl:1:0)": False, "psys (intel-rapl:2)": False,
    }  # fmt: skip
    assert energy_line(figures).startswith("energy: 0.1 J a run, 0.20 W in the mean: package-0 (intel-rapl:0) 0.15 W")


def test_what_is_in_a_zone_that_cannot_be_read_counts_itself(tmp_path: Path) -> None:
    zones = Zones(tmp_path, {"intel-rapl:0": "package-0", "intel-rapl:0:0": "core", "intel-rapl:1": "psys"})
    zones.set("intel-rapl:0", "")
    counters, reasons = energy_counters(tmp_path)
    assert [(counter.name, counter.in_sum) for counter in counters] == [
        ("core (intel-rapl:0:0)", True),
        ("psys (intel-rapl:1)", True),
    ]
    assert reasons[0].startswith("RAPL, intel-rapl:0: ")


def test_a_counter_that_begins_anew_several_times_is_looked_at_between(tmp_path: Path, clock_s: list[float]) -> None:
    zones = Zones(tmp_path, {"intel-rapl:0": "package-0"})
    counters, _ = energy_counters(tmp_path)
    meter = EnergyMeter(counters)
    for microjoules in (700_000, 400_000, 100_000, 800_000, 500_000):
        zones.set("intel-rapl:0", microjoules)
        clock_s[0] += 11.0
        meter.look()
    zones.set("intel-rapl:0", 600_000)
    meter.look()
    assert meter.took_s == 55.0, "looks follow each other slowly"
    meter.stop()
    assert meter.spent_j == {"package-0 (intel-rapl:0)": pytest.approx(3.6)}


def test_a_counter_that_fails_later_is_left_out(tmp_path: Path, clock_s: list[float]) -> None:
    zones = Zones(tmp_path, {"intel-rapl:0": "package-0", "intel-rapl:1": "package-1"})
    counters, _ = energy_counters(tmp_path)
    meter = EnergyMeter(counters)
    zones.set("intel-rapl:0", 500_000)
    (tmp_path / "intel-rapl:1" / "energy_uj").unlink()
    clock_s[0] += 1.0
    meter.stop()
    figures = energy_figures(counters, (), meter, 1)
    assert figures["j_per_run"] == 0.5
    assert energy_line(figures).endswith("not counted: package-1 (intel-rapl:1): No such file or directory")


def test_what_may_not_be_read_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Zones(tmp_path, {"intel-rapl:0": "package-0"})
    read_text = Path.read_text

    def refused(self: Path, encoding: str | None = None, errors: str | None = None) -> str:
        if self.name == "energy_uj":
            raise PermissionError(13, "Permission denied")
        return read_text(self, encoding, errors)

    monkeypatch.setattr(Path, "read_text", refused)
    counters, reasons = energy_counters(tmp_path)
    assert counters == []
    line = energy_line(energy_figures(counters, reasons, EnergyMeter(counters), 5))
    assert line.startswith("energy: no counter can be read here (RAPL, intel-rapl:0: Permission denied; no NVIDIA GPU")
    assert "\n" not in line
    assert energy_counters(tmp_path / "nowhere")[1][0] == "RAPL is not there"

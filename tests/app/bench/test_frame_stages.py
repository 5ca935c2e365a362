"""`texelflow bench frame --stages`: each way's stages with their times and bytes, and why one cannot be had."""

import json
import sys
from typing import Any

import pytest

from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive
from texelflow.app.bench import frame_stages
from texelflow.gpu_delegate.base.errors import DeviceError

pytestmark = [pytest.mark.gl, pytest.mark.usefixtures("selfie_model")]

STAGES = ("bench", "frame", "--stages", "--size", "97x65", "--runs", 3, "--warmup", 1)
I420_BYTES = 97 * 65 + 2 * 49 * 33  # as recorded
READ_BYTES = 98 * 66 * 3 // 2  # made even
MASK_BYTES = 256 * 256 * 4
ORDER = {
    "gl": ["upload", "image_to_tensor", "network", "refine", "composite", "read", "total"],
    "cpu": ["image_to_tensor", "network", "upload", "refine", "composite", "read", "total"],
}
BYTES = {  # that move, up and back, by stage
    "gl": {"upload": (I420_BYTES, 0), "read": (0, READ_BYTES), "total": (I420_BYTES, READ_BYTES)},
    "cpu": {"upload": (I420_BYTES + MASK_BYTES, 0), "total": (I420_BYTES + MASK_BYTES, 0)},
}


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def _no_opengl(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise DeviceError("no OpenGL on this machine; use --backend cpu")

    monkeypatch.setattr(frame_stages, "open_context", refuse)


@pytest.fixture
def _no_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)


def ways_of(out: str) -> dict[str, Any]:
    ways: dict[str, Any] = json.loads(out)["ways"]
    return ways


def test_both_ways_have_each_stage_with_its_times_and_bytes(texelflow: Command) -> None:
    result = texelflow(*STAGES, "--json")
    assert result.code == 0
    figures, ways = json.loads(result.out), ways_of(result.out)
    assert (figures["model"], figures["size"], figures["runs"]) == ("selfie", [97, 65], 3)
    assert list(ways) == ["gl", "cpu"]
    for name, way in ways.items():
        stages = way["stages"]
        assert list(stages) == ORDER[name]
        assert way["effect"] == "replace"
        assert all(0 < each["median_ms"] <= each["p95_ms"] for each in stages.values()), stages
        assert stages["total"]["p95_ms"] >= max(each["p95_ms"] for each in stages.values()), (
            "no run is shorter than a part"
        )
        found = {stage: (each["uploaded_bytes"], each["readback_bytes"]) for stage, each in stages.items()}
        assert {stage: moved for stage, moved in found.items() if any(moved)} == BYTES[name]
    assert "code on the CPU" in ways["cpu"]["renderer"]
    assert (ways["cpu"]["gl_version"], ways["gl"]["gl_version"][:6]) == (None, "OpenGL")


def test_one_way_is_a_column_with_an_effect(texelflow: Command) -> None:
    result = texelflow(*STAGES, "--backend", "cpu", "--threads", 1, "--effect", "blur")
    assert result.code == 0
    assert "A whole frame, 97x65, blur: ms (median/p95)" in result.out
    header, *_, total = [line for line in result.out.splitlines() if "stage" in line or "total" in line]
    assert ("cpu" in header, "gl" in header) == (True, False)
    assert " KiB up" in total
    assert "cpu: " in result.out.splitlines()[-1]
    assert "1 thread" in result.out.splitlines()[-1]


def test_a_network_that_finds_things_has_a_stage_of_its_own_and_the_parts_of_both(texelflow: Command) -> None:
    result = texelflow(*STAGES, "--model", "face-detection-short", "--json")
    assert result.code == 0
    for name, way in ways_of(result.out).items():
        stages = way["stages"]
        assert list(stages) == ["upload", "find", "composite", "read", "total"]
        assert (way["effect"], way["found"]) == ("findings", 1)
        assert way["cpu_ms"] > 0
        assert (stages["find"]["readback_bytes"] > 0) == (name == "gl")


@exhaustive
def test_how_many_things_are_found_is_said(texelflow: Command) -> None:
    assert "thing found" in texelflow(*STAGES, "--model", "face-detection-short", "--backend", "cpu").out


@pytest.mark.usefixtures("_no_opengl")
def test_without_opengl_a_line_says_so_unless_it_was_asked_for(texelflow: Command) -> None:
    result = texelflow(*STAGES)
    assert result.code == 0
    assert "gl: no OpenGL on this machine" in result.out
    assert "composite" in result.out
    assert "no OpenGL" in texelflow(*STAGES, "--backend", "gl").complaint


@pytest.mark.usefixtures("_no_opengl", "_no_llvm")
def test_with_neither_there_is_nothing_but_lines(texelflow: Command) -> None:
    result = texelflow(*STAGES, "--json")
    assert result.code == 1
    assert {name: list(way) for name, way in ways_of(result.out).items()} == {"gl": ["why"], "cpu": ["why"]}
    assert "no LLVM" in ways_of(result.out)["cpu"]["why"]
    assert "no LLVM" in texelflow(*STAGES, "--backend", "cpu").complaint


@pytest.mark.parametrize(
    ("options", "fragment"),
    [
        ("--stages --masks m.npy", "--masks is for the frame job"),
        ("--effect blur", "--effect is for whole frames: add --stages"),
        ("--stages --effect blurr", "did you mean blur?"),
        ("--stages --precision fp16", "are for one way: add --backend gl or --backend cpu"),
        ("--stages --precision fp16 --backend cpu", "--precision fp16 is for the GPU"),
        ("--stages --backend gl --threads 2", "--cpu and --threads are for the CPU"),
        ("--stages --backend auto", "gl or cpu is needed here"),
        ("--stages --runs 0", "--runs goes from 1"),
    ],
)
def test_refuses(options: str, fragment: str, texelflow: Command) -> None:
    assert fragment in texelflow("bench", "frame", *options.split()).complaint

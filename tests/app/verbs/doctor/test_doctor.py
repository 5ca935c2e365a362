"""texelflow doctor on this machine as it is, and as others are: nothing broken may break the doctor."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.commands import Command, Result
from tests.helpers.display import Display
from tests.helpers.markers import exhaustive, one_in
from texelflow.app.verbs.doctor import diagnoses
from texelflow.app.verbs.doctor.doctor import probe

pytestmark = pytest.mark.gl


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def diagnosis(result: Result) -> tuple[Mapping[str, Mapping[str, Any]], list[str]]:
    """Findings by name, and the reasons why recordings cannot be segmented."""
    assert result.err == ""
    told = json.loads(result.out)
    assert told["ok"] == (result.code == 0) == (not told["reasons"])
    assert {finding["state"] for finding in told["findings"]} <= {"ok", "warn", "missing"}
    assert all(finding["advice"] for finding in told["findings"] if finding["state"] != "ok")
    return {finding["name"]: finding for finding in told["findings"]}, told["reasons"]


def test_this_machine_can(texelflow: Command, selfie_model: Path) -> None:
    named, _ = diagnosis(texelflow("doctor", "--developer", "--json"))
    for name in ("Python", "packages", "version", "storage bindings", "fence", "TensorFlow Lite", "libx264 encoder"):
        assert named[name]["state"] == "ok", named[name]
    assert named["selfie"]["found"] == f"{selfie_model.stat().st_size:,} bytes"
    assert ": 16 floats" in (code := named["native code"]["found"]) or ": 8 floats" in code or ": 4 floats" in code
    assert named["auto"]["found"].endswith("(TEXELFLOW_AUTO=hardware)")
    assert {"timer", "KHR_debug", "device 0", "display", "decoders", "folder", "xdotool"} <= set(named)


@exhaustive
def test_the_table_fits_a_terminal(
    texelflow: Command, selfie_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    result = texelflow("doctor")
    assert result.code == 0
    assert max(map(len, result.out.splitlines())) <= 100
    assert "Recordings can be segmented here" in result.out.splitlines()[-1]
    assert "Models" in result.out
    assert not {"Tests", "Xvfb", "glslangValidator"} & set(result.out.split()), "they are a developer's"


@one_in(
    3,
    ("environment", "reason"),
    [
        ({"__EGL_VENDOR_LIBRARY_FILENAMES": "/nonexistent", "__EGL_VENDOR_LIBRARY_DIRS": ""}, "EGL has no device"),
        ({"GLCONTEXT_LINUX_LIBEGL": "libEGL-of-nobody.so"}, "libEGL-of-nobody.so cannot be loaded"),
        ({"GLCONTEXT_DEVICE_INDEX": "99"}, "EGL has no device 99"),
        ({"TEXELFLOW_GPU": "nonsense"}, "no GPU is called nonsense"),
        ({"MESA_GL_VERSION_OVERRIDE": "3.1", "MESA_GLES_VERSION_OVERRIDE": "3.0"}, "OpenGL 3.1 and OpenGL ES 3.0 (ll"),
        ({"TEXELFLOW_CACHE": "/dev/null/models"}, "cannot be stored: Not a directory"),
    ],
)
def test_says_why_it_cannot(
    environment: dict[str, str],
    reason: str,
    texelflow: Command,
    selfie_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    result = texelflow("doctor", "--json")
    _, reasons = diagnosis(result)
    assert result.code == 2
    assert reason in reasons[0]
    assert "texelflow doctor" not in result.out  # that it is already


@exhaustive
def test_older_opengl_leaves_the_network_to_the_cpu(
    texelflow: Command, selfie_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MESA_GL_VERSION_OVERRIDE", "3.3")
    monkeypatch.setenv("TEXELFLOW_GL_API", "gl")
    monkeypatch.setenv("MESA_GLES_VERSION_OVERRIDE", "3.0")
    result = texelflow("doctor", "--json")
    named, _ = diagnosis(result)
    assert result.code == 0
    assert "not compute" in named["version"]["found"]


@exhaustive
def test_a_display_that_is_not_there(texelflow: Command, selfie_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", ":12345")
    result = texelflow("doctor", "--json")
    named, _ = diagnosis(result)
    assert (result.code, named["window"]["state"]) == (0, "missing")
    monkeypatch.delenv("DISPLAY")
    (line,) = diagnoses.display(probe("window"), os.environ)
    assert (line.name, line.state) == ("display", "warn")
    assert line.advice


@exhaustive
def test_a_display_that_is_there(texelflow: Command, selfie_model: Path, display: Display) -> None:
    named, _ = diagnosis(texelflow("doctor", "--json"))
    assert display.name in named["display"]["found"]
    assert named["window"]["found"].startswith("opens: OpenGL ")


@exhaustive
def test_garbage_in_the_cache_is_named(texelflow: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / ".store-xyz").write_bytes(b"half a model")
    (folder / "selfie_segmentation.tflite").write_bytes(b"damaged")
    monkeypatch.setenv("TEXELFLOW_CACHE", str(tmp_path))
    result = texelflow("doctor", "--json")
    named, _ = diagnosis(result)
    assert result.code == 0  # it can be fetched
    assert ".store-xyz" in named["garbage"]["found"]
    assert named["selfie"]["found"] == "damaged"
    assert sorted(path.name for path in folder.iterdir()) == [".store-xyz", "selfie_segmentation.tflite"]


@pytest.mark.parametrize(
    ("script", "why"),
    [("kill -SEGV $$", "signal 11"), ("echo no such driver >&2; exit 1", "no such driver"), ("echo {", "not start")],
)
def test_a_driver_that_kills_who_asks_it(
    script: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    assert why in probe("opengl")["error"]
    assert diagnoses.opengl(probe("opengl"))[0].stops


@exhaustive
def test_a_check_that_fails_is_a_finding(texelflow: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)  # as where it is not installed
    result = texelflow("doctor", "--json")
    named, reasons = diagnosis(result)
    assert result.code == 2
    assert named["this check"]["topic"] == "Video"
    assert any("av" in reason for reason in reasons)


def test_a_kind_of_cpu_that_is_not_there_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXELFLOW_CPU", "altivec")
    native = next(line for line in diagnoses.cpu(probe("cpu"), True) if line.name == "native code")
    assert native.found.startswith("TEXELFLOW_CPU=altivec")
    assert native.advice == "unset it, or name one of these"

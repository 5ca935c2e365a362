"""--gl-api: which OpenGL is opened, for verbs with settings and without, and what JSON says of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive
from texelflow import assets
from texelflow.app.opengl_options import opengl_chosen

CLIP = Path(assets.__file__).parent / "people.mp4"
VARIABLES = ("TEXELFLOW_GPU", "TEXELFLOW_GL_API")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@exhaustive
@pytest.mark.gl
def test_a_recording_gives_the_same_masks_by_either(tmp_path: Path, run: Command, selfie_model: Path) -> None:
    pictures = {}
    for api, name in (("gl", "OpenGL "), ("gles", "OpenGL ES 3.")):
        flags = ("--backend", "gl", "--gl-api", api, "--effect", "replace", "--json", "--from", 60, "--to", 61)
        result = run("replay", CLIP, "--masks", tmp_path / api / "masks", "--out", tmp_path / api / "cut", *flags)
        assert result.code == 0, result.err
        assert json.loads(result.out)["gl_version"].startswith(name)
        files = sorted((tmp_path / api).rglob("*.png"))
        pictures[api] = [cv2.imread(str(path), cv2.IMREAD_UNCHANGED) for path in files]
    assert len(pictures["gl"]) == 4
    for one, other in zip(pictures["gl"], pictures["gles"], strict=True):
        assert one.std() > 10
        assert np.abs(one.astype(int) - other).max() <= 1


def test_choices_are_in_the_environment_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXELFLOW_GL_API", "gl")
    monkeypatch.delenv("TEXELFLOW_GPU", raising=False)
    with opengl_chosen({"gpu": "1", "gl_api": "gles"}):
        assert [os.environ[name] for name in VARIABLES] == ["1", "gles"]
    assert [os.environ.get(name) for name in VARIABLES] == [None, "gl"]
    with opengl_chosen({"gl_api": "auto"}):
        assert os.environ["TEXELFLOW_GL_API"] == "gl", "what the shell says stays"


def test_another_api_is_refused_in_one_line(run: Command) -> None:
    for verb in (("replay", CLIP), ("bench", "frame")):
        assert "gles" in run(*verb, "--gl-api", "vulkan").complaint


@pytest.mark.gl
def test_softpipe_has_no_buffer_textures() -> None:
    program = (
        "from texelflow.gpu_delegate.targets.gl.context import open_context as o; c = o(); print(c.renderer, c.limits)"
    )
    environment = {**os.environ, "GALLIUM_DRIVER": "softpipe"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("softpipe Limits(texture_buffer_texels=0,")

"""What apitrace sees of a run at OpenGL's own door: our counter of what is read back is not believed, but checked."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.markers import exhaustive
from tests.helpers.running import ROOT
from tests.helpers.traced_calls import calls_of, reading
from texelflow import assets

pytestmark = pytest.mark.gl

CLIP = Path(assets.__file__).parent / "people.mp4"


@exhaustive
@pytest.mark.skipif(shutil.which("apitrace") is None, reason="needs apitrace")
def test_a_replay_that_records_nothing_reads_nothing(tmp_path: Path) -> None:
    trace = tmp_path / "calls.trace"
    command = ["apitrace", "trace", "-a", "egl", "-o", trace, sys.executable, "-m", "texelflow.app", "replay", CLIP]
    options = ["--backend", "gl", "--effect", "blur", "--to", "2", "--json"]
    done = subprocess.run(
        [*map(str, command), *options], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    calls = calls_of(trace)
    assert sum(call.startswith("glDispatchCompute(") for call in calls) >= told["frames"] * told["dispatches"] > 0
    assert reading(calls) == []
    assert told["readback_bytes"] == 0


def test_calls_that_read_are_told_from_those_that_write() -> None:
    read = [
        "glReadPixels(x = 0, y = 0, width = 640, height = 480, format = GL_RGBA, pixels = NULL)",
        "glReadnPixelsARB(x = 0)",
        "glGetTexImage(target = GL_TEXTURE_2D, level = 0)",
        "glGetnCompressedTexImage(target = GL_TEXTURE_2D)",
        "glGetTextureSubImage(texture = 1)",
        "glGetNamedBufferSubData(buffer = 1, offset = 0, size = 4, data = blob(4))",
        "glMapBufferRange(target = GL_ARRAY_BUFFER, length = 4, access = GL_MAP_READ_BIT) = 0x1",
        "glMapNamedBufferRange(buffer = 1, length = 4, access = GL_MAP_WRITE_BIT | GL_MAP_READ_BIT) = 0x1",
        "glMapBuffer(target = GL_ARRAY_BUFFER, access = GL_READ_WRITE) = 0x1",
    ]
    others = [
        "glMapBufferRange(target = GL_ARRAY_BUFFER, access = GL_MAP_WRITE_BIT | GL_MAP_UNSYNCHRONIZED_BIT) = 0x1",
        "glMapBuffer(target = GL_ARRAY_BUFFER, access = GL_WRITE_ONLY) = 0x1",
        "glUnmapBuffer(target = GL_ARRAY_BUFFER) = GL_TRUE",
        "glGetIntegerv(pname = GL_READ_BUFFER, params = &0)",
        "glBindImageTexture(unit = 0, access = GL_WRITE_ONLY)",
        "glGetPointerv(pname = GL_DEBUG_CALLBACK_FUNCTION, params = &0x7f)",
    ]
    assert reading([*read, *others]) == read

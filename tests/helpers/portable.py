"""Checks that drawing works on OpenGL 3.3 and on what a Raspberry Pi has, and that shaders are valid GLSL."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import pytest

from tests.gpu_compilers.glslang import VALIDATOR

ROOT = Path(__file__).parents[2]


def _has_terminals() -> bool:
    """Whether a pseudo-terminal can be had: bare chroots and some containers have no /dev/ptmx or /dev/pts."""
    try:
        ends = os.openpty()
    except OSError:
        return False
    for end in ends:
        os.close(end)
    return True


needs_validator = pytest.mark.skipif(shutil.which(VALIDATOR) is None, reason=f"{VALIDATOR} is not installed")
needs_terminal = pytest.mark.skipif(not _has_terminals(), reason="no pseudo-terminal can be opened: /dev/pts has them")

_OLD = {"MESA_GL_VERSION_OVERRIDE": "3.3", "TEXELFLOW_GL_API": "gl"}
_LACKING = ("EXT_texture_buffer", "OES_texture_buffer", "EXT_texture_norm16", "OES_texture_float_linear",
            "EXT_disjoint_timer_query", "EXT_buffer_storage")  # fmt: skip
_VIDEOCORE = {
    "MESA_GL_VERSION_OVERRIDE": "3.1",
    "MESA_GLES_VERSION_OVERRIDE": "3.1",
    "MESA_EXTENSION_OVERRIDE": " ".join(f"-GL_{name}" for name in _LACKING),
}


def assert_runs_with_opengl_3_3(function: Callable[[], None]) -> None:
    """Call a function of a test's module in a process whose OpenGL is that old, without compute shaders."""
    _run_with(_OLD, [function])


def assert_runs_like_a_raspberry_pi(*functions: Callable[[], None]) -> None:
    """The same in one whose OpenGL and OpenGL ES are no newer than VideoCore's, and lack what those of it lack."""
    _run_with(_VIDEOCORE, functions)


def _run_with(versions: Mapping[str, str], functions: Sequence[Callable[[], None]]) -> None:
    program = "".join(f"from {each.__module__} import {each.__name__} as run; run()\n" for each in functions)
    command, environment = (sys.executable, "-c", program), {**os.environ, **versions}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def assert_valid_glsl(shaders: Mapping[str, str], folder: Path, kind: Literal["frag", "comp"] = "frag") -> None:
    """Have sources, by any names, compiled without a warning; files are written into an empty folder."""
    for name, source in shaders.items():
        (folder / f"{name}.{kind}").write_text(source)
    command = [VALIDATOR, *map(str, folder.iterdir())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    assert "WARNING" not in done.stdout

"""Drawing functions and shaders go in; an old OpenGL and the reference compiler have to be content with them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import pytest

ROOT = Path(__file__).parents[1]
_VALIDATOR = "glslangValidator"

needs_validator = pytest.mark.skipif(shutil.which(_VALIDATOR) is None, reason=f"{_VALIDATOR} is not installed")


def assert_runs_with_opengl_3_3(function: Callable[[], None]) -> None:
    """Call a function of a test's module in a process whose OpenGL is that old, without compute shaders."""
    command = (sys.executable, "-c", f"from {function.__module__} import {function.__name__} as run; run()")
    old = {**os.environ, "MESA_GL_VERSION_OVERRIDE": "3.3"}
    done = subprocess.run(command, env=old, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def assert_valid_glsl(shaders: Mapping[str, str], folder: Path, kind: Literal["frag", "comp"] = "frag") -> None:
    """Have sources, by any names, compiled without a warning; files are written into an empty folder."""
    for name, source in shaders.items():
        (folder / f"{name}.{kind}").write_text(source)
    command = [_VALIDATOR, *map(str, folder.iterdir())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    assert "WARNING" not in done.stdout

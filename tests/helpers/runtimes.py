"""Loads each of TensorFlow Lite's packages, for tests that use them all.

Both can be loaded into one process: neither has names that the other would take.
"""

import importlib
import platform
import sys
from typing import Any

import pytest

from tests.helpers.markers import exhaustive_if

HAS_WHEELS_OF_BOTH = (  # as pyproject.toml says it
    sys.platform == "linux" and sys.version_info < (3, 12) and platform.machine() in ("x86_64", "aarch64")
)
RUNTIMES = ("tflite_runtime", "ai_edge_litert") if HAS_WHEELS_OF_BOTH else ("ai_edge_litert",)


in_each_runtime = pytest.mark.parametrize("runtime", RUNTIMES, indirect=True)  # in make test, too


@pytest.fixture(params=[exhaustive_if(name != RUNTIMES[0], name) for name in RUNTIMES])
def runtime(request: pytest.FixtureRequest) -> Any:
    """TensorFlow Lite's module `interpreter` of each package that can be installed here; of one in make test."""
    return importlib.import_module(f"{request.param}.interpreter")

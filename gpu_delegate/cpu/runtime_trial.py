"""Tries a TensorFlow Lite runtime in another process, and keeps the result in the cache on disk.

A wrong layout of a struct ends there in a crash, a hang or a difference. What has passed is kept by the runtime's
library and by our structs.
"""

import contextlib
import ctypes
import hashlib
import importlib.metadata
import importlib.util
import json
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from ..base.disk_cache import DiskCache
from ..base.isolated_python import OURS, python_command
from .interpreter_module import NEWER, OLDER

StructLayout = tuple[str, int, Sequence[object]]  # of a struct: its name, its bytes, its fields
_SECONDS = 60.0
_KIND = "runtimes"  # of entries in the cache
_PASSED = b"works"
# By module: the package, the oldest version that has what is needed, and how to get another.
RUNTIMES = MappingProxyType(
    {
        "tflite_runtime.interpreter": ("tflite-runtime", (2, 14)),
        "ai_edge_litert.interpreter": ("ai-edge-litert", (1, 2)),
        "tensorflow.lite.python.interpreter": ("tensorflow", (2, 14)),
    }
)


def package_of(module: str) -> str:
    """The package that a module is of, with its version."""
    package, _ = RUNTIMES[module]
    return f"{package} {version_of(package)}".strip()


def installed_runtime() -> str:
    """The package that load_interpreter_module(newer=True) would load, with its version; "" where there is none."""
    for module in (NEWER, OLDER):
        with contextlib.suppress(ImportError, ValueError):
            if importlib.util.find_spec(module) is not None:
                return package_of(module)
    return ""


def trial_of(module: str, program: str, layouts: Sequence[StructLayout]) -> str:
    """What a program says of a loaded module in a process of its own; "" where it finds nothing, now or before.

    The program prints a JSON list. `layouts` says which structs it tries.
    """
    cache, key = DiskCache(), _key(module, version_of(RUNTIMES[module][0]), layouts)
    if key is not None and cache.get(_KIND, key) == _PASSED:
        return ""
    found = _differences(module, program)
    if not found and key is not None:
        cache.put(_KIND, key, _PASSED)
    return found


def _differences(module: str, program: str) -> str:
    """What the child finds, or how it ends; "" for a runtime as it should be."""
    command = python_command(program, module, trusted=OURS)
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return f"a trial of it ran longer than {_SECONDS:.0f} s"
    except OSError as error:
        return f"a trial of it cannot be started ({error.strerror or error})"
    try:
        found = json.loads(done.stdout.splitlines()[-1])
        return "; ".join(map(str, found[:1]))
    except (IndexError, ValueError, TypeError):
        return f"a trial of it {_ending(done.returncode)}"


def _ending(code: int) -> str:
    with contextlib.suppress(ValueError):
        return f"ends with {signal.Signals(-code).name}"
    return f"ends with exit code {code}"


# The cache ------------------------------------------------------------------------------------------------------------


def _key(module: str, version: str, layouts: Sequence[StructLayout]) -> str | None:
    """What the cache knows the runtime by; None where its library cannot be told."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        library = Path(sys.modules[module]._interpreter_wrapper.__file__)
        found = library.stat()
        digest = hashlib.sha256(repr([*layouts]).encode()).hexdigest()[:16]
        return json.dumps([module, version, str(library)[-1000:], found.st_size, found.st_mtime_ns, digest])
    return None


def struct_layouts(kinds: Mapping[str, object]) -> list[StructLayout]:
    """Names, sizes and fields of those kinds that are structs of ctypes, so that others are tried again."""
    return [
        (name, ctypes.sizeof(kind), [(field, getattr(kind, field).offset) for field, *_ in kind._fields_])
        for name, kind in sorted(kinds.items())
        if isinstance(kind, type) and issubclass(kind, ctypes.Structure) and kind is not ctypes.Structure
    ]


def version_of(package: str) -> str:
    """Of a package, as its metadata say; "" where there are none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def numbers_of(version: str) -> tuple[int, ...]:
    """Major and minor."""
    return tuple(map(int, re.findall(r"\d+", version)[:2]))

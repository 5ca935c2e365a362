"""The name of a runtime's module goes in; the call returns if its structs are laid out as ours, and else it raises.

A child process tries them once (runtime_probe.py): a wrong layout ends there in a crash, a hang or a difference. What
has passed is kept in the cache on disk, by the runtime's library and by our structs.
"""

import contextlib
import ctypes
import hashlib
import importlib.metadata
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from ..base.disk_cache import DiskCache
from ..base.errors import UnsupportedError
from ..base.isolated_python import OURS, python_command
from . import structs
from .builtin_structs import CALLS, STRUCTS, BuiltinStruct

_PROGRAM = f"from {__package__}.runtime_probe import main; main()"
_SECONDS = 60.0
_KIND = "runtimes"  # of entries in the cache
_PASSED = b"works"
# By module: the package, the oldest version that has what is needed, and how to get another.
_RUNTIMES = MappingProxyType(
    {
        "tflite_runtime.interpreter": ("tflite-runtime", (2, 14)),
        "ai_edge_litert.interpreter": ("ai-edge-litert", (1, 2)),
        "tensorflow.lite.python.interpreter": ("tensorflow", (2, 14)),
    }
)
_ADVICE = "use tflite-runtime 2.14 or ai-edge-litert from 1.2 on"


def check_runtimes(asking: str | None) -> None:
    """Check the runtime whose module `asking` is, or all that are loaded if it is none that is known.

    Raises UnsupportedError for one that is too old, whose structs differ, or that a delegate makes crash.
    """
    loaded = [name for name in _RUNTIMES if name in sys.modules]
    for name in [asking] if asking in loaded else loaded:
        _check_once(name)


@lru_cache(maxsize=8)
def _check_once(module: str) -> None:
    package, oldest = _RUNTIMES[module]
    version = _version(package)
    if version and _numbers(version) < oldest:
        wanted = ".".join(map(str, oldest))
        raise UnsupportedError(f"{package} {version} is too old for GpuDelegate, which needs {wanted} or later")
    found = trial_of(module, _PROGRAM, {**vars(structs), **STRUCTS, **CALLS})
    if found:
        raise UnsupportedError(f"GpuDelegate does not work with this {package} {version}: {found}; {_ADVICE}")


def package_of(module: str) -> str:
    """The package that a module is of, with its version."""
    package, _ = _RUNTIMES[module]
    return f"{package} {_version(package)}".strip()


def trial_of(module: str, program: str, layouts: Mapping[str, object]) -> str:
    """What a program says of a loaded module in a process of its own; "" where it finds nothing, now or before.

    The program prints a JSON list. `layouts` has the structs that it tries.
    """
    cache, key = DiskCache(), _key(module, _version(_RUNTIMES[module][0]), layouts)
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


def _key(module: str, version: str, structs_tried: Mapping[str, object]) -> str | None:
    """What the cache knows the runtime by; None where its library cannot be told."""
    with contextlib.suppress(AttributeError, OSError, TypeError):
        library = Path(sys.modules[module]._interpreter_wrapper.__file__)
        found = library.stat()
        layouts = hashlib.sha256(repr([*_layouts(structs_tried)]).encode()).hexdigest()[:16]
        return json.dumps([module, version, str(library)[-1000:], found.st_size, found.st_mtime_ns, layouts])
    return None


def _layouts(kinds: Mapping[str, object]) -> Iterator[tuple[str, tuple[int, list[tuple[str, int]]]]]:
    """Names, sizes and fields of our structs, so that others are tried again."""
    for name, kind in sorted(kinds.items()):
        if isinstance(kind, type) and issubclass(kind, ctypes.Structure) and kind is not ctypes.Structure:
            fields = [(field, getattr(kind, field).offset) for field, *_ in kind._fields_]
            yield name, (ctypes.sizeof(kind), fields)
        elif isinstance(kind, BuiltinStruct):
            yield name, (kind.format.size, [(field, ord(letter)) for field, letter in kind.fields])


def _version(package: str) -> str:
    """As the package's metadata say; "" where there are none."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:2]))

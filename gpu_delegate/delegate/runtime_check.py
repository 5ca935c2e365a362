"""Checks once per runtime, in a child process, that its C structs are laid out as ours.

A child process tries them once (runtime_probe.py): a wrong layout ends there in a crash, a hang or a difference. What
has passed is kept in the cache on disk, by the runtime's library and by our structs.
"""

import sys
from functools import lru_cache

from ..base.errors import UnsupportedError
from ..cpu.runtime_trial import RUNTIMES, StructLayout, numbers_of, struct_layouts, trial_of, version_of
from . import structs
from .builtin_structs import CALLS, STRUCTS, BuiltinStruct

_PROGRAM = f"from {__package__}.runtime_probe import main; main()"
_ADVICE = "use tflite-runtime 2.14 or ai-edge-litert from 1.2 on"


def check_runtimes(asking: str | None) -> None:
    """Check the runtime whose module `asking` is, or all that are loaded if it is none that is known.

    Raises UnsupportedError for one that is too old, whose structs differ, or that a delegate makes crash.
    """
    loaded = [name for name in RUNTIMES if name in sys.modules]
    for name in [asking] if asking in loaded else loaded:
        _check_once(name)


@lru_cache(maxsize=8)
def _check_once(module: str) -> None:
    package, oldest = RUNTIMES[module]
    version = version_of(package)
    if version and numbers_of(version) < oldest:
        wanted = ".".join(map(str, oldest))
        raise UnsupportedError(f"{package} {version} is too old for GpuDelegate, which needs {wanted} or later")
    found = trial_of(module, _PROGRAM, [*struct_layouts(vars(structs)), *_option_layouts()])
    if found:
        raise UnsupportedError(f"GpuDelegate does not work with this {package} {version}: {found}; {_ADVICE}")


def _option_layouts() -> list[StructLayout]:
    """Names, sizes and fields of the options that operators have in C."""
    kinds = sorted({**STRUCTS, **CALLS}.items())
    return [(name, kind.format.size, kind.fields) for name, kind in kinds if isinstance(kind, BuiltinStruct)]

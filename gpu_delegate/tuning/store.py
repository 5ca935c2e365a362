"""A context goes in; what was measured on its device in earlier runs comes out, and what is new is kept for later ones.

An entry of the cache belongs to a vendor, a renderer, a driver's version and the rules by which kernels are made here:
with another of them, nothing is known.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ..choices import UNMEASURED, Choices
from ..context import Context
from ..device import Device
from ..disk_cache import DiskCache
from ..runtime import device_of
from .table import as_json, parse_choices

KIND = "tuning"  # of entries in the cache

_FOLDERS = ((".", "*.py"), ("ops", "*.py"), ("passes", "*.py"), ("../shaders", "*.comp"), ("../shaders", "*.glsl"))
_MOST_NAME = 500  # characters of what a driver calls itself


def tuned_device(context: Context) -> Device:
    """The device of a context, with the choices that were measured for it."""
    return replace(device_of(context), choices=load_choices(context))


def load_choices(context: Context) -> Choices:
    """All that is kept of a context's device."""
    data = DiskCache().get(KIND, device_key(context))
    return UNMEASURED if data is None else parse_choices(data)


def keep_choices(context: Context, choices: Choices) -> bool:
    """Add choices to those that are kept; whether that was possible."""

    def updated(before: bytes | None) -> bytes:
        known = UNMEASURED if before is None else parse_choices(before)
        return as_json(known.updated(choices))

    return DiskCache().change(KIND, device_key(context), updated)


def device_key(context: Context) -> str:
    """What an entry is known by."""
    names = (context.vendor, context.renderer, context.version)
    return json.dumps([*(name[:_MOST_NAME] for name in names), rules_version()])


@lru_cache(maxsize=1)
def rules_version() -> str:
    """12 hex digits, other ones when a file changes that kernels are made by."""
    digest = hashlib.sha256()
    for path in _rules():
        digest.update(path.name.encode() + b"\n" + path.read_bytes())
    return digest.hexdigest()[:12]


def _rules() -> Iterator[Path]:
    engine = Path(__file__).parents[1]
    for folder, pattern in _FOLDERS:
        yield from sorted((engine / folder).glob(pattern))

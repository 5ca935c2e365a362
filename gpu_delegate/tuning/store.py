"""Keeps what was measured on a device in the cache on disk.

An entry of the cache belongs to a vendor, a renderer, a driver's version and the rules by which kernels are made here:
with another of them, nothing is known.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ..base.disk_cache import DiskCache
from ..device.choices import UNMEASURED, Choices
from ..device.device import Device
from ..model.graph import Graph
from ..model.layout import Precision
from ..plan.signature import graph_signature
from ..targets.gl.context import Context
from ..targets.gl.runtime import device_of
from .switch import is_tuning_wanted
from .tuning_table import as_json, parse_choices

KIND = "tuning"  # of entries in the cache

_FOLDERS = ((".", "*.py"), ("ops", "*.py"), ("passes", "*.py"), ("../shaders", "*.comp"), ("../shaders", "*.glsl"))
_MOST_NAME = 500  # characters of what a driver calls itself


def tuned_device(context: Context, precision: Precision = "fp32") -> Device:
    """As device_of, with the choices that were measured."""
    return replace(device_of(context, precision), choices=load_choices(context))


def load_choices(context: Context) -> Choices:
    """All that is kept of a context's device; nothing where tunings shall not count."""
    if not is_tuning_wanted():
        return UNMEASURED
    data = DiskCache().get(KIND, device_key(context))
    return UNMEASURED if data is None else parse_choices(data)


def keep_choices(context: Context, choices: Choices) -> bool:
    """Add choices to those that are kept; whether that was possible."""

    def updated(before: bytes | None) -> bytes:
        known = UNMEASURED if before is None else parse_choices(before)
        return as_json(known.updated(choices))

    return DiskCache().change(KIND, device_key(context), updated)


def is_worth_tuning(context: Context, source: Graph, precision: Precision) -> bool:
    """Whether a program may tune a model by itself: not where that was done, or nobody wants it.

    Nor on software renderers, which need the processor for other work.
    """
    if context.is_software or not context.can_compute or not is_tuning_wanted():
        return False
    return not is_tuned(context, source, precision)


def is_tuned(context: Context, source: Graph, precision: Precision) -> bool:
    """Whether a tuning of a model, given as read, has come to its end on this device."""
    return DiskCache().get(KIND, _model_key(context, source, precision)) is not None


def mark_tuned(context: Context, source: Graph, precision: Precision) -> None:
    """Say so."""
    DiskCache().put(KIND, _model_key(context, source, precision), b"done")


def _model_key(context: Context, source: Graph, precision: Precision) -> str:
    return f"{device_key(context)} {graph_signature(source, precision)} {source.name[:_MOST_NAME]}"


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

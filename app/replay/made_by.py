"""Makes the tag of a finished file: the program's version, and a digest of all that decides the file."""

import contextlib
import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import fields
from importlib.metadata import version

from ..settings.settings import Settings

# Settings that do not change a picture
_OF_OUTPUT = {"out", "masks", "cutouts", "json_lines", "panel", "fullscreen", "start_hint"}


def told_of_settings(settings: Settings) -> tuple[str, ...]:
    """Lines on what decides a picture besides its input: settings, and the model's and the background's file."""
    named = [
        f"{field.name}={getattr(settings, field.name)!r}" for field in fields(settings) if field.name not in _OF_OUTPUT
    ]
    return (*named, *told_of_files((settings.model, settings.background)))


def told_of_files(paths: Iterable[str]) -> tuple[str, ...]:
    """Lines on the sizes and the times of files, as far as they are there."""
    told = list[str]()
    for path in paths:
        with contextlib.suppress(OSError, ValueError):
            found = os.stat(path)
            told.append(f"{found.st_size} bytes of {found.st_mtime_ns}")
    return tuple(told)


def made_of(told: Sequence[str]) -> str:
    """The tag of a file that all of these lines decide."""
    digest = hashlib.sha256("\n".join(told).encode(errors="surrogateescape")).hexdigest()[:32]
    return f"texelflow {version('texelflow')} {digest}"

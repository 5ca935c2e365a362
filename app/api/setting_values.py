"""Turns keyword arguments into values of settings, by the names that the command line has for them."""

import os
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from .app.settings.settings import (
    SettingKind,
    SettingValue,
    Verb,
    current_names,
    defaults,
    specs,
    value_of,
    with_values,
)
from .gpu_delegate.base.errors import UsageError

__all__ = ["plain_value", "setting_values"]

_OF_CALLER: Mapping[str, str] = MappingProxyType(  # settings that are no arguments, and what is
    {
        **dict.fromkeys(("out", "masks", "cutouts"), "texelflow.write(path, pictures) writes files"),
        **dict.fromkeys(("codec", "quality"), "it is an argument of texelflow.write"),
        "json_lines": "findings are an attribute of what texelflow.video returns",
        "camera": "it is the first argument",
        "virtual_camera": "texelflow.VirtualCamera shows pictures to other programs",
        **dict.fromkeys(("gpu", "gl_api"), "set TEXELFLOW_GPU or TEXELFLOW_GL_API in the environment"),
        **dict.fromkeys(("microphone", "sound", "mute"), "pictures have no sound"),
    }
)
_OF_WINDOWS = ("side_by_side", "panel", "fullscreen", "backgrounds", "start_hint")


def setting_values(verb: Verb, given: Mapping[str, object]) -> dict[str, SettingValue]:
    """The values of settings that were given by name. Raises UsageError for others than the verb has.

    A path may be an os.PathLike, a size (width, height), a range (low, high), a point (x, y).
    """
    kinds = {spec.name: spec.kind for spec in specs()}
    values = {name: plain_value(value, kinds.get(name)) for name, value in current_names(given).items()}
    known = {spec.name: spec for spec in specs(verb)}
    for name in values:
        if why := _OF_CALLER.get(name) or ("there is no window" if name in _OF_WINDOWS else ""):
            raise UsageError(f"{name} cannot be set here: {why}")
    with_values(defaults(verb), values)  # raises for names that are none, and for values
    for name in values:
        if name not in known:
            raise UsageError(f"{name} is a setting of cameras and streams alone; leave it out")
    found = dict[str, SettingValue]()
    for name, raw in values.items():
        value = value_of(known[name], raw)
        assert value is not None, "with_values has taken it"
        found[name] = value
    return found


def plain_value(value: object, kind: SettingKind | None) -> object:
    """A setting of a kind, None for none that is known, as it would be written in a file of settings."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (tuple, list)) and len(value) == 2 and kind in ("size", "range", "point"):
        return f"{value[0]}{'x' if kind == 'size' else ','}{value[1]}"
    if isinstance(value, (tuple, list)) and kind == "class" and value:
        return ",".join(map(str, value))
    return value

"""The settings of a Pipeline: those of live and replay that concern the picture, checked by their one table."""

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypedDict

import numpy as np

from .app.frame.inference.backends import CpuEngine
from .app.frame.looks.effects import Effect
from .app.picture.preprocess import Fit, Preprocessing
from .app.session.derived import asked_memory, check_hybrid
from .app.settings.config_watch import implied_by
from .app.settings.settings import (
    Settings,
    SettingValue,
    Spec,
    current_names,
    setting_meant,
    specs,
    while_running,
    with_values,
)
from .app.tracking.auto_framing import FramingMode
from .gpu_delegate.base.errors import UsageError
from .gpu_delegate.base.wording import meant
from .gpu_delegate.model.graph import Hybrid
from .gpu_delegate.model.layout import Precision, stores_halves
from .gpu_delegate.plan.memory.memory_options import MemoryMode
from .setting_values import plain_value

__all__ = ["PipelineSettings", "changed_settings", "first_settings", "settings_of_pipeline"]


class PipelineSettings(TypedDict, total=False):
    """What a Pipeline and its set() take by name; `texelflow live --help` and `--dump-config` explain each."""

    model: str | os.PathLike[str]
    backend: Literal["auto", "gl", "cpu"]
    cpu: CpuEngine
    threads: int
    gpu: str
    gl_api: Literal["auto", "gl", "gles"]
    precision: Precision
    hybrid: Hybrid
    compile_budget: float
    fit: Fit
    preprocessing: Preprocessing
    input_range: tuple[float, float] | str
    activation: Literal["auto", "none", "sigmoid", "softmax"]
    channel: int | str | Sequence[int | str]
    classes: int | str | Sequence[int | str]  # the same
    task: Literal["auto", "segmentation", "picture"]
    output_range: tuple[float, float] | str
    most: int
    memory: MemoryMode
    planner: str
    reorder: bool
    effect: Effect
    background: str | os.PathLike[str]
    blur: float
    strength: float
    legend: bool
    light_wrap: float
    mirror: bool
    open_faces: str
    face_numbers: bool
    private: bool
    refine: bool
    detail: Literal["off", "on"]
    keep_held: bool
    edges: bool
    smooth: float
    threshold: float
    gamma: float
    grow: float
    feather: float
    delay_video: bool
    frame: FramingMode
    zoom: float
    pan: tuple[float, float] | str
    every: int
    skip_still: bool
    still_db: float


_ARRAYS = MappingProxyType({"background": "; write the picture to a file, and name that"})

_OTHERS: Mapping[str, str] = MappingProxyType(  # why others of live's are none here, by section or name
    {
        "camera": "it takes the frames that you give it",
        "output": "pictures and masks come back to you",
        "window": "it has no window",
        "side_by_side": "it has no window",
        "freeze": "hold the picture that you have",
        "face_delay": "delay_video=True looks one frame ahead",
        "gestures": "what hands do is for windows",
        "tune": "`texelflow tune` measures kernels",
        "small_model": "set(model=...) changes the model",
        "auto": "no frame rate is kept here; every= and skip_still= work less",
    }
)


def first_settings(given: Mapping[str, Any]) -> tuple[Settings, Mapping[str, SettingValue]]:
    """The settings of live with what was given, and that as it is in the table. Raises UsageError."""
    return _with(Settings(), given)


def changed_settings(before: Settings, given: Mapping[str, Any]) -> tuple[Settings, Mapping[str, SettingValue]]:
    """The settings with others that were given, of those that may change while it runs. Raises UsageError."""
    settings, values = _with(before, given)
    _, late = while_running(before, settings)
    if late:
        what = "cannot be turned off" if late == ("private",) else "cannot change"
        raise UsageError(f"{', '.join(late)} {what} while it runs: make another Pipeline")
    return settings, values


def settings_of_pipeline(settings: Settings) -> dict[str, SettingValue]:
    """All that a Pipeline has, by name."""
    return {name: getattr(settings, name) for name in _NAMES}


def _with(before: Settings, given: Mapping[str, Any]) -> tuple[Settings, Mapping[str, SettingValue]]:
    known = {spec.name: spec for spec in specs()}
    values = dict[str, Any]()
    for name, value in current_names(given).items():
        if name not in _NAMES:
            raise UsageError(_foreign(name, known))
        values[name] = plain_value(value, known[name].kind)
        if isinstance(values[name], np.ndarray):
            raise UsageError(f"{name} is an array, not a setting's value{_ARRAYS.get(name, '')}")
    values = {**implied_by(values), **values}
    settings = with_values(before, values)
    if settings.backend == "cpu" and stores_halves(settings.precision):
        raise UsageError(f"precision {settings.precision} is for the GPU: leave it or backend cpu out")
    check_hybrid(settings.hybrid, settings.backend, settings.cpu)
    asked_memory(settings)
    return settings, {name: getattr(settings, name) for name in values}


def _foreign(name: str, known: Mapping[str, Spec]) -> str:
    """Why a name is none of a Pipeline's settings."""
    spec = known.get(name)
    why = _OTHERS.get(name) or (spec and _OTHERS.get(spec.section))
    return f"{name} is no setting of a Pipeline: {why}{meant(name, _NAMES)}" if why else (
        f"{name} is no setting of a Pipeline{setting_meant(name, _NAMES)}"
    )  # fmt: skip


_NAMES = tuple(current_names(PipelineSettings.__annotations__))

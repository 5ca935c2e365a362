"""Refuses settings that a model cannot follow, in one line, before any work."""

from collections.abc import Mapping

from texelflow.gpu_delegate.base.errors import UsageError

from ..frame.inference.network_output import MOST_CLASSES, shows_classes
from ..frame.looks.effects import Effect, mask_effects, nearest_effect, picture_effects, shows_room
from ..models.model_loading import FrameModel, PictureModel
from ..settings.settings import Settings, current_names, specs
from .derived import keeps_alpha
from .room_guard import opened_by

_WITH_TRANSPARENCY = ("masks", "cutouts", "background")  # settings that a picture with alpha can follow
_WITH_MASK = ("blur", "light_wrap", *(spec.name for spec in specs() if spec.section == "mask"))


def effects_of_model(model: FrameModel) -> tuple[Effect, ...]:
    """What can be drawn with a model, its usual effect first."""
    if isinstance(model, PictureModel):
        return picture_effects(model.has_alpha)
    return mask_effects(shows_classes(model.output_size, model.classes))


def check_abilities(model: FrameModel, settings: Settings, flags: Mapping[str, object]) -> None:
    """Raise UsageError for outputs, and for options that were given, which a model is not able to follow.

    What a file of settings says may wait for another model.
    """
    given = {name: value for name, value in current_names(flags).items() if value is not False}
    given |= {name: True for name in ("masks", "cutouts") if getattr(settings, name)}
    names = (spec.name for spec in specs() if spec.name in given)
    for name in names:
        if reason := _against(name, model):
            raise UsageError(f"--{name.replace('_', '-')}: {reason}")
    effects = effects_of_model(model)
    if "effect" in given and settings.effect not in effects:
        raise UsageError(f"--effect {settings.effect}: {lacks_effect(settings.effect, model.name, effects)}")
    if settings.private:
        _check_private(model, settings, effects)
    if given.get("legend") and settings.effect != "classes":
        raise UsageError(f"--legend goes with --effect classes, not with {settings.effect}")


def _check_private(model: FrameModel, settings: Settings, effects: tuple[Effect, ...]) -> None:
    """Raise UsageError for settings by which the room would be seen."""
    effect = nearest_effect(settings.effect, effects)
    if shows_room(effect):
        hiding = ", ".join(each for each in effects if not shows_room(each))
        choice = f"choose --effect {hiding}" if hiding else "choose another --model"
        raise UsageError(f"--private: {model.name} with effect {effect} shows the room; {choice}")
    drops_alpha = settings.virtual_camera or (bool(settings.out) and not keeps_alpha(settings))
    if shows_room(effect, opaque=drops_alpha):
        raise UsageError("--private: effect cutout hides the room by transparency alone, which is lost here; use color")
    if settings.side_by_side:
        raise UsageError("--private: --side-by-side shows the room; leave it out")
    if opened := opened_by(settings, as_flag=True):
        raise UsageError(f"--private: {opened} shows the room; leave it out, or keep to the bound")


def lacks_effect(effect: Effect, name: str, effects: tuple[Effect, ...]) -> str:
    """Why a model cannot have an effect, and what it can have."""
    if "picture" in effects:
        without = "" if "cutout" in effects else " without transparency"
        return f"{name} puts out a picture{without}; with it there are {', '.join(effects)}"
    what = f"does not have the 2 to {MOST_CLASSES} classes that are needed" if effect == "classes" else "puts out masks"
    return f"{name} {what}; with it there are {', '.join(effects)}"


def _against(name: str, model: FrameModel) -> str:
    """Why a model has nothing to do with a setting; '' if it has."""
    if not isinstance(model, PictureModel):
        return f"{model.name} puts out masks, not a picture; leave it out" if name == "strength" else ""
    if name in _WITH_MASK or (name in _WITH_TRANSPARENCY and not model.has_alpha):
        return f"{model.name} puts out a picture and has no mask; leave it out or choose another --model"
    return ""

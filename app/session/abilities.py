"""Refuses settings that a model cannot follow, in one line, before any work."""

from collections.abc import Mapping

from texelflow.gpu_delegate.base.errors import UsageError

from ..frame.inference.network_output import MOST_CLASSES, shows_classes
from ..frame.looks.effects import (
    Effect,
    found_effects,
    mask_effects,
    nearest_effect,
    picture_effects,
    shows_room,
    with_hidden_faces,
)
from ..models.finding_loading import ShownModel
from ..models.finding_model import FindingModel
from ..models.model_loading import PictureModel
from ..settings.settings import Settings, current_names, specs
from .derived import keeps_alpha
from .room_guard import opened_by

_WITH_TRANSPARENCY = ("masks", "cutouts", "background")  # settings that a picture with alpha can follow
_OF_WORK = ("every", "skip_still", "still_db", "auto")
_OF_INPUT = ("fit", "preprocessing", "strength")  # what regions of frames do not follow
_WITH_MASK = ("blur", "light_wrap", *(spec.name for spec in specs() if spec.section == "mask"))


def effects_of_model(model: ShownModel) -> tuple[Effect, ...]:
    """What can be drawn with a model, its usual effect first."""
    if isinstance(model, FindingModel):
        return found_effects()
    if isinstance(model, PictureModel):
        return with_hidden_faces(picture_effects(model.has_alpha))
    return with_hidden_faces(mask_effects(shows_classes(model.output_size, model.classes)))


def check_abilities(model: ShownModel, settings: Settings, flags: Mapping[str, object]) -> None:
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


def _check_private(model: ShownModel, settings: Settings, effects: tuple[Effect, ...]) -> None:
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
    if effects[0] == "findings":
        return f"{name} finds things and has no mask; with it there are {', '.join(effects)}"
    if "picture" in effects:
        without = "" if "cutout" in effects else " without transparency"
        return f"{name} puts out a picture{without}; with it there are {', '.join(effects)}"
    what = f"does not have the 2 to {MOST_CLASSES} classes that are needed" if effect == "classes" else "puts out masks"
    return f"{name} {what}; with it there are {', '.join(effects)}"


def _against(name: str, model: ShownModel) -> str:
    """Why a model has nothing to do with a setting; '' if it has."""
    if isinstance(model, FindingModel):
        if name in _OF_WORK:
            return f"{model.name} follows what it finds from frame to frame, and sees each; leave it out"
        without = name in (*_WITH_MASK, *_WITH_TRANSPARENCY, *_OF_INPUT)
        return f"{model.name} finds things and has no mask; leave it out or choose another --model" if without else ""
    if name == "most":
        return f"{model.name} finds nothing that could be followed; leave it out"
    if not isinstance(model, PictureModel):
        return f"{model.name} puts out masks, not a picture; leave it out" if name == "strength" else ""
    if name in _WITH_MASK or (name in _WITH_TRANSPARENCY and not model.has_alpha):
        return f"{model.name} puts out a picture and has no mask; leave it out or choose another --model"
    return ""

"""Options or settings of a look go in; the look comes out, validated."""

from dataclasses import dataclass, replace
from pathlib import Path

from texelflow.gpu_delegate.errors import UsageError

from .effects import COLOUR, EFFECTS, LEAST_GAMMA, LEAST_RADIUS, MOST_GAMMA, MOST_RADIUS
from .moving_background import check_background
from .render import Color, Look


@dataclass(frozen=True)
class LookOptions:
    """The options of a look; None and the defaults here mean that nothing was given.

    `background` is a file, an image or a recording, or #rrggbb; `blur` a radius in pixels of the frame.
    """

    effect: str | None = None
    background: str | None = None
    blur: float | None = None
    light_wrap: float = 0.0
    threshold: float = 0.5
    softness: float = 1.0
    gamma: float = 1.0
    mirror: bool = False
    side_by_side: bool = False


@dataclass(frozen=True)
class Choice:
    """A look, and the file of its background if one was chosen."""

    look: Look
    background: Path | None = None


def choose_look(options: LookOptions = LookOptions()) -> Choice:
    """What the options of one run mean together; an option of one effect selects that effect.

    Raises UsageError for what does not go together or is out of range, MediaError for a background that is no good.
    """
    effect = options.effect or _implied(options)
    choice = look_of(replace(options, effect=effect))
    if options.blur is not None and effect != "blur":
        raise UsageError(f"--blur goes with --effect blur, not with {effect}")
    if options.background is not None and effect not in ("replace", "color"):
        raise UsageError(f"--background goes with --effect replace or color, not with {effect}")
    if effect == "color" and choice.background:
        raise UsageError(f"--background {options.background}: the effect color takes a colour such as #20c070")
    if choice.background:
        check_background(choice.background)
    return choice


def look_of(options: LookOptions) -> Choice:
    """The look of settings; those that the effect does not use are kept for other effects.

    Opens no file. Raises UsageError for what is out of range.
    """
    color, effect = _color(options.background), options.effect or "tint"
    if (options.background or "").startswith("#") and color is None:
        raise UsageError(f"--background {options.background}: a colour is #rrggbb, such as #3366cc")
    if effect not in EFFECTS:
        raise UsageError(f"--effect {effect}: one of {', '.join(EFFECTS)} is needed")
    if options.blur is not None:
        _check("--blur", options.blur, LEAST_RADIUS, MOST_RADIUS, "a radius", " pixels")
    for name in ("light_wrap", "threshold", "softness"):
        _check("--" + name.replace("_", "-"), getattr(options, name), 0, 1)
    _check("--gamma", options.gamma, LEAST_GAMMA, MOST_GAMMA)
    if "://" in (options.background or ""):
        raise UsageError(f"--background {options.background}: a file is needed, an image or a recording; save it first")
    look = Look(
        effect="color" if color and effect == "replace" else effect,
        color=color or Look.color,
        radius=options.blur,
        light_wrap=options.light_wrap,
        threshold=options.threshold,
        softness=options.softness,
        gamma=options.gamma,
        mirror=options.mirror,
        side_by_side=options.side_by_side,
    )
    return Choice(look, None if color or options.background is None else Path(options.background))


def _implied(options: LookOptions) -> str:
    """The effect that is meant where none is named."""
    if options.background is not None:
        return "color" if _color(options.background) else "replace"
    return "tint" if options.blur is None else "blur"


def _color(background: str | None) -> Color | None:
    """The colour that #rrggbb names; None for everything else."""
    found = COLOUR.fullmatch(background or "")
    if found is None:
        return None
    red, green, blue = bytes.fromhex(found[1])
    return red / 255, green / 255, blue / 255


def _check(option: str, value: float, least: float, most: float, what: str = "a number", unit: str = "") -> None:
    if not least <= value <= most:
        raise UsageError(f"{option} {value:g}: {what} from {least:g} to {most:g}{unit} is needed")

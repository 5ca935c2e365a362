"""Adds an option to a verb of the command line for each of its settings.

Verbs that have only a few settings take their options one by one, so that all are named and explained alike.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import typer

from texelflow.gpu_delegate.base.errors import UsageError

from .settings import SettingKind, Spec, Verb, meaning, specs

_SHORT = {"model": ("-m",)}
_PLACEHOLDERS: dict[SettingKind, str] = {
    "int": "N", "float": "NUMBER", "size": "WxH", "range": "LO,HI", "point": "X,Y", "path": "PATH",
    "background": "PATH|COLOR", "text": "NAME", "texts": "NAME", "class": "N|NAME,…", "gestures": "GESTURE=ACTION",
    "faces": "N,…",
}  # fmt: skip
_TYPES: dict[SettingKind, Any] = {
    "bool": bool | None, "int": int | None, "float": float | None, "texts": list[str] | None,
}  # fmt: skip


def with_settings(verb: Verb) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Gives a verb's function all its settings as options, beside its own; those of earlier names are not shown.

    Its first parameter gets those that were given, values by name, for a ConfigWatch, where they override the file.
    """
    options = [_option(spec) for spec in specs(verb)]
    options += [_earlier_option(spec) for spec in specs(verb) if spec.was and verb == "live"]

    return lambda function: with_options(function, options)


def with_options(function: Callable[..., Any], options: Sequence[inspect.Parameter]) -> Callable[..., Any]:
    """A verb's function with further options, beside its own; its first parameter gets the values of those that were
    given, by name."""

    def run(**given: Any) -> Any:
        values = {option.name: given.pop(option.name) for option in options}
        return function({name: value for name, value in values.items() if value not in (None, [])}, **given)

    own = list(inspect.signature(function, eval_str=True).parameters.values())
    positional = [each for each in own[1:] if each.default is inspect.Parameter.empty]
    rest = [each for each in own[1:] if each.default is not inspect.Parameter.empty]
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*positional, *rest, *options)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # Typer reads both
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    return run


def as_in_settings(name: str) -> Any:
    """The option of a setting, to annotate another verb's parameter with."""
    spec = _spec_of(name)
    return _made(spec, meaning(spec))


def flag_of(name: str) -> str:
    """light_wrap as it is given on the command line."""
    spec = _spec_of(name)
    return spec.flag if spec.name == name else f"--{name}"


def _spec_of(name: str) -> Spec:
    return next(spec for spec in specs() if name in (spec.name, *spec.other_names))


def _option(spec: Spec) -> inspect.Parameter:
    """The option of one setting; it is None where it is not given, so that the file's value counts."""
    option, annotation = _made(spec, meaning(spec), None), _TYPES.get(spec.kind, str | None)
    if spec.kind == "path":
        option.callback = _not_empty
    return inspect.Parameter(spec.name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=annotation)


def _not_empty(param: typer.CallbackParam, name: str | None) -> str | None:
    if name == "":
        raise UsageError(f"{param.opts[0]} '': an empty name; give one, or leave the option out")
    return name


def _earlier_option(spec: Spec) -> inspect.Parameter:
    """The option by the name that it had in earlier versions."""
    option = typer.Option(None, f"--{spec.was}", hidden=True, callback=_not_empty if spec.kind == "path" else None)
    return inspect.Parameter(spec.was, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=str | None)


def _made(spec: Spec, values: str, *default: Any) -> Any:
    """`default` is None, or nothing where the parameter has one of its own."""
    names = [f"{spec.flag}/--no-{spec.flag[2:]}"] if spec.kind == "bool" else [spec.flag, *_SHORT.get(spec.name, ())]
    names += [f"--{spec.also}"] if spec.also else []
    metavar = "|".join(spec.choices) if spec.kind == "choice" else spec.placeholder or _PLACEHOLDERS.get(spec.kind)
    if spec.kind == "text" and spec.choices:  # of names; what else it takes are files
        metavar = "NAME|FILE"
    help = f"{spec.help} ({values})" if values else spec.help
    return typer.Option(
        *default, *names, metavar=metavar, help=help, rich_help_panel=spec.section.capitalize(),
        show_default=False,
    )  # fmt: skip

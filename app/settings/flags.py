"""A verb's function goes in; the same with an option of the command line for every setting comes out.

Verbs that have only some of the settings take their options one by one, so that both are called and explained alike.
"""

import inspect
from collections.abc import Callable
from typing import Any

import typer

from .settings import Kind, Spec, meaning, specs

_SHORT = {"model": ("-m",)}
_PLACEHOLDERS: dict[Kind, str] = {
    "int": "N", "float": "NUMBER", "size": "WxH", "path": "PATH", "background": "PATH|#rrggbb", "text": "NAME",
}  # fmt: skip
_TYPES: dict[Kind, Any] = {"bool": bool | None, "int": int | None, "float": float | None}


def with_settings(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a verb all settings as options, beside its own.

    Its first parameter gets those that were given, values by name, for a Watch to put above the file's.
    """
    names = [spec.name for spec in specs()]

    def run(**given: Any) -> Any:
        values = {name: given.pop(name) for name in names}
        return verb({name: value for name, value in values.items() if value is not None}, **given)

    own = list(inspect.signature(verb, eval_str=True).parameters.values())[1:]
    options = [_option(spec) for spec in specs()]
    parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *options)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # Typer reads both
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__name__, run.__doc__ = verb.__name__, verb.__doc__
    return run


def as_in_live(name: str, values: str = "") -> Any:
    """The option of a setting, to annotate another verb's parameter with; `values` are its own range and default."""
    spec = _spec_of(name)
    return _made(spec, values or meaning(spec))


def flag_of(name: str) -> str:
    """light_wrap as it is given on the command line."""
    return _spec_of(name).flag


def _spec_of(name: str) -> Spec:
    return next(spec for spec in specs() if spec.name == name)


def _option(spec: Spec) -> inspect.Parameter:
    """The option of one setting; it is None where it is not given, so that the file's value counts."""
    option, annotation = _made(spec, meaning(spec), None), _TYPES.get(spec.kind, str | None)
    return inspect.Parameter(spec.name, inspect.Parameter.KEYWORD_ONLY, default=option, annotation=annotation)


def _made(spec: Spec, values: str, *default: Any) -> Any:
    """`default` is None, or nothing where the parameter has one of its own."""
    names = [f"{spec.flag}/--no-{spec.flag[2:]}"] if spec.kind == "bool" else [spec.flag, *_SHORT.get(spec.name, ())]
    metavar = "|".join(spec.choices) if spec.kind == "choice" else _PLACEHOLDERS.get(spec.kind)
    if spec.kind == "text" and spec.choices:  # of names; what else it takes are files
        metavar = "NAME|FILE"
    return typer.Option(
        *default, *names, metavar=metavar, help=f"{spec.help} ({values})", rich_help_panel=spec.section.capitalize(),
        show_default=False,
    )  # fmt: skip

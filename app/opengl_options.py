"""The options --gpu and --gl-api: choose how OpenGL is opened while a verb runs.

Meanwhile the choices are in the environment, as TEXELFLOW_GPU and TEXELFLOW_GL_API, so that processes that the verb
starts follow them, too.
"""

import contextlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any

from texelflow.gpu_delegate.base.errors import UsageError

from .settings.flags import as_in_settings, with_options
from .settings.settings import Settings

_AUTO = "auto"
_VARIABLES: Mapping[str, str] = MappingProxyType({"gpu": "TEXELFLOW_GPU", "gl_api": "TEXELFLOW_GL_API"})


def opengl_of(settings: Settings) -> Mapping[str, str]:
    """What settings choose, for opengl_chosen."""
    return {name: getattr(settings, name) for name in _VARIABLES}


def opengl_environment(settings: Settings) -> Mapping[str, str]:
    """The same for the environment of other machines: variables and their values, none for what is not chosen."""
    return {
        variable: value
        for name, variable in _VARIABLES.items()
        if (value := getattr(settings, name)) not in ("", _AUTO)
    }


@contextlib.contextmanager
def opengl_chosen(choices: Mapping[str, str]) -> Iterator[None]:
    """Within it OpenGL is opened on the `gpu` of a number or name, by a `gl_api`; without them as the environment says.

    Raises UsageError where programs cannot choose.
    """
    gpu, api = choices.get("gpu", ""), choices.get("gl_api", _AUTO)
    if gpu and sys.platform in ("win32", "darwin"):
        raise UsageError(f"--gpu {gpu}: the system chooses here, by its own settings of graphics")
    if api not in (_AUTO, "gl", "gles"):
        raise UsageError(f"--gl-api {api}: auto, gl or gles is needed")
    before = {variable: os.environ.get(variable) for variable in _VARIABLES.values()}
    for variable, value in zip(_VARIABLES.values(), (gpu, api.removeprefix(_AUTO)), strict=True):
        if value:
            os.environ[variable] = value
    try:
        yield
    finally:
        for variable, kept in before.items():
            if kept is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = kept


def with_opengl(function: Callable[..., Any]) -> Callable[..., Any]:
    """A verb that opens OpenGL, with these options beside its own."""

    def run(chosen: dict[str, str], **given: Any) -> Any:
        with opengl_chosen(chosen):
            return function(**given)

    first = inspect.Parameter("chosen", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    own = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in inspect.signature(function, eval_str=True).parameters.values()
    ]
    run.__signature__ = inspect.Signature([first, *own])  # type: ignore[attr-defined]
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    options = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, as_in_settings(name)]
        )
        for name in _VARIABLES
    ]
    return with_options(run, options)

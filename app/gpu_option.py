"""A verb's function goes in; the same with the option --gpu comes out, by which OpenGL is opened while the verb runs.

The choice is in the environment meanwhile, TEXELFLOW_GPU, so that processes that the verb starts make it, too.
"""

import contextlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Any

from texelflow.gpu_delegate.errors import UsageError

from .settings.flags import as_in_settings, with_options

_VARIABLE = "TEXELFLOW_GPU"
_OPTION = Annotated[str | None, as_in_settings("gpu")]


@contextlib.contextmanager
def gpu_chosen(name: str) -> Iterator[None]:
    """Within it OpenGL is opened on the GPU of a number or name; by what the environment says where that is empty.

    Raises UsageError where programs cannot choose.
    """
    if name and sys.platform in ("win32", "darwin"):
        raise UsageError(f"--gpu {name}: the system chooses here, by its own settings of graphics")
    before = os.environ.get(_VARIABLE)
    if name:
        os.environ[_VARIABLE] = name
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_VARIABLE, None)
        else:
            os.environ[_VARIABLE] = before


def with_gpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """A verb that opens OpenGL, with --gpu beside its own options."""

    def run(chosen: dict[str, str], **given: Any) -> Any:
        with gpu_chosen(chosen.get("gpu", "")):
            return function(**given)

    first = inspect.Parameter("chosen", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    own = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in inspect.signature(function, eval_str=True).parameters.values()
    ]
    run.__signature__ = inspect.Signature([first, *own])  # type: ignore[attr-defined]
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    option = inspect.Parameter("gpu", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_OPTION)
    return with_options(run, [option])

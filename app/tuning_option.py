"""The option --no-tune: kernels keep the settings of the GPU's family, and nothing is measured.

Meanwhile TEXELFLOW_TUNE=0 is in the environment, so that it counts for processes that the verb starts, too.
"""

import contextlib
import inspect
import os
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from texelflow.gpu_delegate.tuning.switch import VARIABLE

_OPTION = typer.Option("--tune/--no-tune", help="Use and find what is fastest on this GPU, or its family's settings.")


@contextlib.contextmanager
def tuning_chosen(is_wanted: bool) -> Iterator[None]:
    """Within it nothing is tuned, and no earlier tuning counts, unless it is wanted; then as the environment says."""
    before = os.environ.get(VARIABLE)
    if not is_wanted:
        os.environ[VARIABLE] = "0"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before


def with_tuning(function: Callable[..., Any]) -> Callable[..., Any]:
    """A verb with this option beside its own."""

    def run(*given: Any, tune: bool, **more: Any) -> Any:
        with tuning_chosen(tune):
            return function(*given, **more)

    own = inspect.signature(function, eval_str=True).parameters.values()
    option = inspect.Parameter(
        "tune", inspect.Parameter.KEYWORD_ONLY, default=True, annotation=Annotated[bool, _OPTION]
    )
    run.__signature__ = inspect.Signature([*own, option])  # type: ignore[attr-defined]
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    return run

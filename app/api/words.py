"""Words the program's errors and messages for users of the Python API."""

import contextlib
import os
import re
from collections.abc import Iterator

from .app.console import Console
from .gpu_delegate.base.errors import TexelflowError, UsageError
from .gpu_delegate.delegate.delegate_options import one_of
from .mistake_hints import model_hint

__all__ = ["LibraryConsole", "in_words_of_python", "one_of", "path_of"]

_OPTION = re.compile(r"--([a-z]+(?:-[a-z]+)*)")


class LibraryConsole(Console):
    """A console that shows progress, on terminals alone, and nothing if it is quiet: what was decided can be asked."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet=True)
        self._err.quiet = quiet

    def note(self, line: str) -> None:
        """Nothing."""


@contextlib.contextmanager
def in_words_of_python() -> Iterator[None]:
    """Errors that name options of the command line name the arguments of that meaning: input_range."""
    try:
        yield
    except TexelflowError as error:
        text = _OPTION.sub(lambda option: option[1].replace("-", "_"), str(error))
        if text == str(error):
            raise
        raise type(error)(text) from None


def path_of(model: object) -> str:
    """A model's name or path as text. Raises UsageError."""
    if not isinstance(model, str | os.PathLike):
        what = f"{type(model).__name__}{model_hint(model)}"
        raise UsageError(f"a model is a name of the catalogue or a path, not {what}")
    path = os.fspath(model)
    if not isinstance(path, str):
        raise UsageError("a model's path is text, not bytes")
    return path

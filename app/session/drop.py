"""Takes the first of the files dropped onto a window that can be a background, or says why there is none."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from texelflow.gpu_delegate.base.errors import MediaError

from ..frame.looks.moving_background import check_background
from ..settings.settings import is_valid
from ..threads import ThreadCall


class DroppedFiles:
    """Files are looked at on a thread of their own, and nobody waits for that."""

    def __init__(self) -> None:
        self._call: ThreadCall[str] | None = None

    @property
    def busy(self) -> bool:
        """Whether files are being looked at."""
        return self._call is not None

    def look_at(self, paths: Sequence[Path]) -> None:
        """Find the first good one; those of an earlier drop no longer count."""
        if paths:
            self._call = ThreadCall(partial(first_background, paths))

    def collect(self) -> str:
        """The background that was found, as the setting has it; '' as long as there is none.

        Raises MediaError if none of the files can be one.
        """
        if self._call is None or not self._call.ended:
            return ""
        call, self._call = self._call, None
        return call.answer()


def first_background(paths: Sequence[Path]) -> str:
    """The first file that is an image or a video, as the setting `background` has it. Raises MediaError."""
    complaint = ""
    for path in paths:
        try:
            if not is_valid("background", str(path)):
                raise MediaError(f"no background: {str(path)!a} has a name that no setting takes; rename it")
            check_background(path)
            return str(path)
        except MediaError as error:
            complaint = complaint or str(error)
    raise MediaError(complaint if len(paths) == 1 else f"{complaint}; nor can the other {len(paths) - 1} be one")

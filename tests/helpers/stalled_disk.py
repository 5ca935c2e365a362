"""A disk that stalls: PNG files are written only after an event is set."""

import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.waiting import PATIENCE_S
from texelflow.app.media.png import write_png


def stalled_disk(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """The event is to be set before the test ends."""
    free = threading.Event()

    def late(path: Path, picture: npt.NDArray[np.uint8]) -> None:
        assert free.wait(PATIENCE_S)
        write_png(path, picture)

    monkeypatch.setattr("texelflow.app.outputs.png_files.write_png", late)
    return free

"""Drivers that report a GPU reset when a test asks for it, as no software renderer ever does."""

from collections.abc import Callable

import pytest

from texelflow.gpu_delegate.targets.gl import resets
from texelflow.gpu_delegate.targets.gl.opengl import GL, Load

GUILTY = 0x8253  # GL_GUILTY_CONTEXT_RESET


class GpuResets:
    """In place of glGetGraphicsResetStatus of all contexts that are opened from now on, asked as often as can be."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = self._lost = 0
        monkeypatch.setattr(resets, "_status_function", self._status_function)
        monkeypatch.setattr(resets, "_INTERVAL_NS", 0)

    def reset(self) -> None:
        """All contexts that are open are lost."""
        self._lost = self.opened

    def _status_function(self, gl: GL, load: Load) -> Callable[[], int]:
        self.opened += 1
        number = self.opened
        return lambda: GUILTY if number <= self._lost else 0


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> GpuResets:
    """Of the test."""
    return GpuResets(monkeypatch)

"""Memory that a job leaves behind is freed at once."""

import gc
import weakref

import pytest

from texelflow.app.freed_memory import JobMemory


class _Left:
    """Refers to itself, as sessions do."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize("opened", [True, False])
def test_what_refers_to_itself_is_freed_after_every_job(opened: bool) -> None:
    memory = JobMemory()
    gc.disable()
    try:
        for _ in range(3):
            left = weakref.ref(_Left())
            assert left()
            memory.free(opened)
            assert left() is None
    finally:
        gc.enable()


def test_what_the_first_job_has_opened_is_not_looked_at_again() -> None:
    memory, before = JobMemory(), gc.get_freeze_count()
    kept = [[number] for number in range(1000)]
    memory.free(opened=False)
    assert gc.get_freeze_count() <= before
    memory.free(opened=True)
    assert gc.get_freeze_count() >= before + len(kept)

"""Asks the stores for the size and the time of inputs that came without, and keeps their order.

Several are asked at once where a store takes that: an answer takes a round trip through the network.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from texelflow.gpu_delegate.base.errors import MediaError

from ...threads import ThreadCall
from .folder_search import FoundFile
from .stores import FolderStore, StoreEntry

AT_ONCE = 32


def measured(found: Iterable[tuple[FoundFile, FolderStore] | None]) -> Iterator[FoundFile]:
    """What no store knows stays without size and time: its worker will say what is wrong.

    After None nothing more may be found for long: what was found before comes out first.
    """
    waiting = deque[tuple[FoundFile, ThreadCall[StoreEntry] | None]]()
    for item in found:
        if item is not None:
            waiting.append(_begun(*item))
        while waiting and (item is None or waiting[0][1] is None or waiting[0][1].ended or len(waiting) >= AT_ONCE):
            yield _with_answer(*waiting.popleft())
    while waiting:
        yield _with_answer(*waiting.popleft())


def _begun(each: FoundFile, store: FolderStore) -> tuple[FoundFile, ThreadCall[StoreEntry] | None]:
    """A call that is under way, for what has to be asked; nobody has to wait for its end."""
    if each.entry.size_bytes is not None or store.is_local:
        return each, None
    if store.takes_threads:
        return each, ThreadCall(partial(_asked, store, each))
    return _told(each, _asked(store, each)), None


def _asked(store: FolderStore, each: FoundFile) -> StoreEntry:
    try:
        return store.measure(each.address) or each.entry
    except MediaError:
        return each.entry


def _with_answer(each: FoundFile, call: ThreadCall[StoreEntry] | None) -> FoundFile:
    return _told(each, call.answer()) if call else each


def _told(each: FoundFile, told: StoreEntry) -> FoundFile:
    return replace(each, entry=replace(each.entry, size_bytes=told.size_bytes, modified_ns=told.modified_ns))

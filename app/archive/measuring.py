"""Inputs of which nobody has told size and time go in; they come out with both, in the same order.

Their stores are asked, several at once where a store takes that: an answer takes as long as a way through the network
and back.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from texelflow.gpu_delegate.errors import MediaError

from .folder_search import FoundFile
from .stores import FolderStore, StoreEntry

AT_ONCE = 32


def measured(found: Iterable[tuple[FoundFile, FolderStore]]) -> Iterator[FoundFile]:
    """What no store knows stays without size and time: its worker will say what is wrong."""
    waiting = deque[tuple[FoundFile, "Future[StoreEntry] | None"]]()
    with ThreadPoolExecutor(AT_ONCE, "texelflow-sizes") as threads:
        try:
            for each, store in found:
                answer: Future[StoreEntry] | None = None
                if each.entry.size_bytes is None and store.takes_threads and not store.is_local:
                    answer = threads.submit(_asked, store, each)
                elif each.entry.size_bytes is None and not store.is_local:
                    answer = Future()
                    answer.set_result(_asked(store, each))
                waiting.append((each, answer))
                while waiting and (waiting[0][1] is None or waiting[0][1].done() or len(waiting) >= AT_ONCE):
                    yield _with_answer(*waiting.popleft())
            while waiting:
                yield _with_answer(*waiting.popleft())
        finally:
            for _, answer in waiting:
                if answer:
                    answer.cancel()


def _asked(store: FolderStore, each: FoundFile) -> StoreEntry:
    try:
        return store.measure(each.address) or each.entry
    except MediaError:
        return each.entry


def _with_answer(each: FoundFile, answer: "Future[StoreEntry] | None") -> FoundFile:
    if answer is None:
        return each
    told = answer.result()
    return replace(each, entry=replace(each.entry, size_bytes=told.size_bytes, modified_ns=told.modified_ns))

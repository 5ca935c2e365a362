"""Lists what an archive has to do and what is done already, input by input, from names and the manifest."""

import contextlib
import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from texelflow.gpu_delegate.base.errors import TexelflowError

from .inputs.fetching import InputCache
from .inputs.input_listing import InputListing
from .jobs.archive_options import ArchiveOptions
from .jobs.failures import StoppedError
from .jobs.jobs import ArchiveInput, Cut, PieceDone
from .jobs.versions import own_versions
from .jobs.worker_config import CACHE_BYTES, STAGING
from .manifest.manifest_index import ManifestIndex
from .manifest.manifest_lines import RunMark
from .manifest.resume import to_be_done
from .results.result_files import holds_what_was_made
from .results.results import SkippedInput
from .staging.staging import Staged

_LOOK_S = 0.25


class ArchiveInputs:
    """What there is to do, read when it is needed, perhaps on another thread than that which asks for pieces."""

    def __init__(self, options: ArchiveOptions, out: Path) -> None:
        """Raises UsageError for names that mean nothing."""
        self.listing = InputListing(
            options.inputs, out, self, of_folders=options.format == "png", follow_links=options.follow_links
        )
        self.stopping = self.listing.stopping
        self._options, self._out = options, out
        self._index: ManifestIndex | None = None
        self._cache = InputCache(None, CACHE_BYTES, self.stopping)

    def know(self, index: ManifestIndex, mark: RunMark) -> None:
        """What earlier runs have done, and what this one's results depend on."""
        self._index, self._mark = index if self._options.resume else None, mark

    def name_of(self, address: str) -> str | None:
        """See KnownNames."""
        return self._index.name_of(address) if self._index else None

    def has_name(self, name: str) -> bool:
        """See KnownNames."""
        return self._index is not None and self._index.has_name(name)

    def has_below(self, folder: str) -> bool:
        """See KnownNames."""
        return self._index is not None and self._index.has_below(folder)

    def has_folder(self, name: str) -> bool:
        """See KnownNames."""
        return self._index is not None and self._index.has_folder(name)

    def __iter__(self) -> Iterator[ArchiveInput | SkippedInput]:
        if self._index is None:
            return iter(self.listing)
        holds = partial(holds_what_was_made, self._out)
        return to_be_done(self.listing, self._index, self._mark, holds, self._sha256_of, self._options.retry_failed)

    def finished_pieces(self, cut_input: ArchiveInput, cut: Cut) -> Iterator[PieceDone]:
        """Those of earlier runs that are still there."""
        for piece in self._index.pieces_of(cut_input.address, cut.sha256, self._mark) if self._index else ():
            if all((self._out / STAGING / file).exists() for file in piece.files.values()):
                yield piece

    def _sha256_of(self, archived: ArchiveInput) -> str | None:
        """None for what cannot be read. Raises StoppedError."""
        with contextlib.suppress(TexelflowError, OSError), self._cache.open(archived) as held:
            while not held.hashed(_LOOK_S):
                if self.stopping.is_set():
                    raise StoppedError
            return held.sha256()
        return None


def mark_of(options: ArchiveOptions, staged: Staged) -> RunMark:
    """What results depend on besides their inputs."""
    told = (*staged.made_from, staged.settings.background, str(options.format), str(options.with_masks))
    digest = hashlib.sha256("\n".join(told).encode(errors="surrogateescape")).hexdigest()
    return RunMark(digest, staged.model, staged.model_sha256, own_versions())

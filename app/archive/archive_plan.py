"""Checks what `archive` is asked to do, and lists what would be done (--dry-run)."""

import contextlib
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from texelflow.gpu_delegate.base.errors import UsageError

from ..console import Console, counted, one_line
from ..media.pipe import PIPE
from ..models.catalogue import resolve
from ..models.entries import entry_of
from ..replay.replay_options import ReplayOptions, check_options
from .archive_inputs import ArchiveInputs, mark_of
from .jobs.archive_options import ArchiveOptions
from .manifest.manifest import MANIFEST_NAME, check_manifest
from .manifest.manifest_index import ManifestIndex
from .progress.progress import readable_size
from .rendering.piece_cutting import check_piece_frames
from .results.result_names import MEDIA_ENDINGS
from .results.results import SkippedInput
from .staging.staging import prepare_staging

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # a path has one slash of an address left
_OPAQUE = ("mp4", "mkv")
MOST_WORKERS = 10_000
BAD_LISTING = 2  # exit code


def check_archive(options: ArchiveOptions) -> None:
    """Raise UsageError for what does not go together, MediaError for a background or a folder that is no good,
    CatalogueError for such a model.
    """
    named, is_folder = str(options.out), os.path.isdir(options.out)  # unlike those of Path, these never raise
    if named == PIPE or _SCHEME.match(named):
        raise UsageError(f"--out {named}: a folder is needed that every machine has under this name")
    if options.out.suffix.lower() in MEDIA_ENDINGS and not is_folder:
        raise UsageError(f"--out {named}: a folder is needed, such as {options.out.with_suffix('')}")
    if os.path.exists(options.out) and not is_folder:
        raise UsageError(f"--out {named}: that is a file; a folder is needed")
    if options.workers is not None and not 1 <= options.workers <= MOST_WORKERS:
        raise UsageError(f"--workers {options.workers}: a number from 1 to {MOST_WORKERS} is needed")
    if options.retry_failed and not options.resume:
        raise UsageError("--retry-failed needs --resume: without it everything is tried")
    if options.resume and options.force:
        raise UsageError("--resume goes on, --force begins anew: leave one of them out")
    check_manifest(options.out, options.resume, options.force)
    check_piece_frames(options.piece_frames)
    settings = options.watch().settings
    if not entry_of(settings.model):  # nothing is fetched
        resolve(settings.model)
    if settings.effect == "cutout" and options.format in _OPAQUE:
        raise UsageError(f"--format {options.format} has no transparency, as --effect cutout needs: mov, webm or png")
    ending = "NAME" if options.format == "png" else f"NAME.{options.format or 'mp4'}"
    if options.format is None and settings.effect == "cutout":
        ending = "NAME.mov"
    settings = replace(settings, out=str(options.out / ending))
    check_options(ReplayOptions(Path("input"), options.flags, config=options.config), settings)


def plan_archive(options: ArchiveOptions, console: Console, as_json: bool) -> int:
    """List what would be done, with the names of results: the exit code, 2 if something could not be listed.

    Nothing is written. Raises TexelflowError.
    """
    counts, size_bytes = Counter[str](), 0
    with contextlib.ExitStack() as stack:
        inputs = _as_resumed(options, console, stack) if options.resume else ArchiveInputs(options, options.out)
        for each in inputs:
            if isinstance(each, SkippedInput):
                counts[each.was] += 1
                continue
            counts["to do"] += 1
            counts["of unknown size"] += each.size_bytes is None
            size_bytes += each.size_bytes or 0
            if as_json:
                console.json({"event": "input", "address": each.address, "name": each.name, "bytes": each.size_bytes})
            else:
                console.say(f"{each.name}  <-  {one_line(each.address)}")
    listing = inputs.listing
    if line := listing.left_out():
        console.note(line)
    for line in listing.not_listed():
        console.warn(line)
    figures = {
        "to_do": counts["to do"],
        "bytes": size_bytes,
        "unknown_sizes": counts["of unknown size"],
        "done_before": counts["done"],
        "failed_before": counts["failed"],
        "left_out": dict(listing.left),
        "not_listed": listing.problem_count,
    }
    console.say(plan_text(figures, options.out))
    if as_json:
        console.json(figures)
    return BAD_LISTING if listing.problem_count else 0


def plan_text(figures: Mapping[str, Any], out: Path) -> str:
    """What would be done, in one line."""
    unknown = f" and {figures['unknown_sizes']:,} of unknown size" if figures["unknown_sizes"] else ""
    before = "".join(
        f"; {figures[key]:,} {what} before"
        for key, what in (("done_before", "done"), ("failed_before", "failed"))
        if figures[key]
    )
    return f"{counted(figures['to_do'], 'input')} to do, {readable_size(figures['bytes'])}{unknown}, to {out}{before}"


def _as_resumed(options: ArchiveOptions, console: Console, stack: contextlib.ExitStack) -> ArchiveInputs:
    """With what the manifest says, which is not touched."""
    out = options.out.absolute()
    inputs, index = ArchiveInputs(options, out), ManifestIndex(out / MANIFEST_NAME)
    stack.callback(index.close)
    with console.download() as progress:
        inputs.know(index, mark_of(options, prepare_staging(options.watch().settings, out, progress, writes=False)))
    return inputs

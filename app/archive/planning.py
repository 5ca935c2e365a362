"""What `archive` is asked to do goes in; what can be said against it, and what would be done, come out."""

from dataclasses import replace
from pathlib import Path

from texelflow.gpu_delegate.errors import UsageError

from ..console import Console, counted
from ..media.pipe import PIPE
from ..replay.options import ReplayOptions, check_options
from .cutting import check_piece_frames
from .inputs import InputListing
from .options import ArchiveOptions
from .result_names import MEDIA_ENDINGS
from .stores import is_address

_OPAQUE = ("mp4", "mkv")
MOST_WORKERS = 10_000
BAD_LISTING = 2  # exit code


def check_archive(options: ArchiveOptions) -> None:
    """Raise UsageError for what does not go together, MediaError for a background that is no good."""
    named = str(options.out)
    if named == PIPE or is_address(named):
        raise UsageError(f"--out {named}: a folder is needed that every machine has under this name")
    if options.out.suffix.lower() in MEDIA_ENDINGS and not options.out.is_dir():
        raise UsageError(f"--out {named}: a folder is needed, such as {options.out.with_suffix('')}")
    if options.out.exists() and not options.out.is_dir():
        raise UsageError(f"--out {named}: that is a file; a folder is needed")
    if options.workers is not None and not 1 <= options.workers <= MOST_WORKERS:
        raise UsageError(f"--workers {options.workers}: a number from 1 to {MOST_WORKERS} is needed")
    if options.retry_failed and not options.resume:
        raise UsageError("--retry-failed needs --resume: without it everything is tried")
    if options.resume and options.force:
        raise UsageError("--resume goes on, --force begins anew: leave one of them out")
    check_piece_frames(options.piece_frames)
    settings = options.watch().settings
    if settings.effect == "cutout" and options.format in _OPAQUE:
        raise UsageError(f"--format {options.format} has no transparency, as --effect cutout needs: mov, webm or png")
    ending = "folder" if options.format == "png" else f"input.{options.format or 'mp4'}"
    if options.format is None and settings.effect == "cutout":
        ending = "input.mov"
    check_options(ReplayOptions(Path("input"), options.flags, config=options.config), replace(settings, out=ending))


def plan_archive(options: ArchiveOptions, console: Console, as_json: bool) -> int:
    """List all inputs with the names of their results, and stop: the exit code, 2 if something could not be listed."""
    listing = InputListing(options.inputs, options.out, of_folders=options.format == "png")
    size_bytes, unknown = 0, 0
    for each in listing:
        size_bytes += each.size_bytes or 0
        unknown += each.size_bytes is None
        if as_json:
            console.json({"event": "input", "address": each.address, "name": each.name, "bytes": each.size_bytes})
        else:
            console.say(f"{each.name}  <-  {each.address}")
    for line in listing.told():
        console.note(line)
    size = f"{size_bytes / 1e9:.1f} GB" + (f" and {unknown} of unknown size" if unknown else "")
    console.say(f"{counted(listing.found, 'input')}, {size}, to {options.out}; nothing was done")
    if as_json:
        console.json(
            {
                "inputs": listing.found,
                "bytes": size_bytes,
                "unknown_sizes": unknown,
                "left_out": dict(listing.left),
                "not_listed": listing.problem_count,
            }
        )
    return BAD_LISTING if listing.problem_count else 0

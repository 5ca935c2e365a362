"""The command line of `texelflow archive`: its options, what they are checked for, and the call that they lead to."""

from pathlib import Path
from typing import Annotated

import typer

from texelflow.gpu_delegate.base.errors import UsageError

from .names import as_written, scheme_of
from .settings.flags import with_settings
from .verb_options import JsonOption, output_option, path_option

_PANEL = "Machines"


def required(inputs: list[str] | None, out: Path | None) -> tuple[tuple[str, ...], Path]:
    """What only --verify does without. Raises UsageError."""
    if not inputs:
        raise UsageError("Missing argument 'INPUT...'; --help shows what is needed")
    if out is None:
        raise UsageError("Missing option '--out'; --help shows what is needed")
    return tuple(inputs), out


def check_alone(inputs: list[str] | None, out: Path | None) -> None:
    """Raise UsageError where something is to be done besides --verify."""
    if inputs or out is not None:
        raise UsageError("--verify FOLDER looks at that folder alone: leave INPUT and --out out")


@with_settings("archive")
def archive_verb(
    flags: dict[str, object],
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT",
            help="Recordings, pictures, folders with all in them, patterns ('rec/**/*.mp4'), lists of these (.txt, "
            ".list, @FILE, - for a pipe), addresses (s3://, sftp://, https://).",
        ),
    ] = None,
    out: Annotated[
        Path | None, path_option("--out", metavar="DIR", help="For results and their manifest; all machines see it.")
    ] = None,
    with_masks: Annotated[
        bool, output_option("--with-masks", help="Masks beside each result: NAME.masks, a gray video or picture.")
    ] = False,
    format: Annotated[
        str | None,
        output_option("--format", metavar="png|mp4|mkv|mov|webm", help="Of results of recordings; mp4 by default."),
    ] = None,
    resume: Annotated[
        bool, output_option("--resume", help="Go on by the folder's manifest: what is done stays, pieces count.")
    ] = False,
    retry_failed: Annotated[
        bool, output_option("--retry-failed", help="With --resume: try inputs again that had failed.")
    ] = False,
    force: Annotated[
        bool, output_option("--force", help="Begin a folder anew that has a manifest or other files.")
    ] = False,
    whole: Annotated[
        bool, output_option("--whole", help="Never cut a recording; else long ones are pieces for many workers.")
    ] = False,
    piece_frames: Annotated[
        int, output_option("--piece-frames", metavar="N", help="Of such pieces, a multiple of 300.")
    ] = 3000,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            rich_help_panel=_PANEL,
            help="Of a Ray that runs: HOST:PORT, or auto; local starts one. Without, processes of this machine work.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N", rich_help_panel=_PANEL, help="In all; by default one for each GPU, else for half of the cores."
        ),
    ] = None,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="In folders, also links that lead out of them.")
    ] = False,
    verify: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Hold all results in it against its manifest, and stop: 1 if any differs."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be done, and stop.")] = False,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="A file of settings, as live has it.")] = None,
    json: JsonOption = False,
) -> int:
    """Segment thousands of recordings and pictures on many machines: of each, what replay makes, in one folder.

    A result is there whole or not at all, with a line in manifest.jsonl; --resume goes on by these lines.
    Processes of this machine do the work, or, with --cluster, Ray's workers; the extra archive-cluster brings Ray.
    What fails is listed, and the rest goes on: exit code 2 then, else 3 if a recording was cut off.
    """
    from .console import Console

    console = Console(quiet=json)
    if verify is not None:
        from .archive.manifest.verify import verify_archive

        check_alone(inputs, out)
        if scheme_of(verify):
            raise UsageError(f"--verify {as_written(verify)}: that is an address; name a folder of this machine")
        return verify_archive(verify, console, json)

    from .archive.archive_plan import check_archive, plan_archive
    from .archive.jobs.archive_options import ArchiveOptions
    from .replay.targets import parse_format

    named, folder = required(inputs, out)
    options = ArchiveOptions(
        named, folder, flags, config, with_masks, parse_format(format), cluster, workers, resume, retry_failed,
        force, whole, piece_frames, follow_links,
    )  # fmt: skip
    check_archive(options)
    if dry_run:
        return plan_archive(options, console, json)

    from .archive.archive import archive
    from .archive.progress.progress import archive_summary_lines

    summary, code = archive(options, console, json)
    for line in archive_summary_lines(summary):
        console.say(line)
    if json:
        console.json(summary)
    return code

"""Replays many inputs, one after the other, each to files of its own.

An input that fails does not stop the others. What was finished by the same settings can be left as it is.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from texelflow.gpu_delegate.base.errors import OutputError, TexelflowError, UsageError

from ..console import Console, Report, counted
from ..files import Files, settle
from ..media.finished import finished_by
from ..media.media_inputs import MediaInput, expand_inputs, files_in
from ..outputs.png_files import make_folder
from ..settings.settings import Settings
from .made_by import made_of, told_of_files, told_of_settings
from .replay import CUT_OFF, replay
from .replay_engine import ReplayEngine
from .replay_options import ReplayOptions, files_of
from .targets import OutputFormat, ReplayTarget, targets_of

BAD_INPUT = 2  # exit code
_MOST_LEFT = 5  # names that are told of


@dataclass(frozen=True)
class BulkOptions:
    """Inputs, and what becomes of all of them; `each` says the rest, its file does not count."""

    inputs: Sequence[str]
    each: ReplayOptions
    format: OutputFormat | None = None
    skip_finished: bool = False


def replay_all(
    options: BulkOptions, console: Console, engine: ReplayEngine | None = None
) -> tuple[dict[str, Any], int]:
    """Run it: the summary of the one input, or of all, and the exit code, which is the worst of all inputs'.

    2 if any was bad, else 3 if any was cut off; 130 or 143 if it was interrupted. An `engine` is that of a single
    input. Raises TexelflowError for options that do not go together, and for what is wrong with the only input.
    """
    if "" in options.inputs:
        raise UsageError("INPUT '': an empty name; name a recording, a picture or a folder")
    inputs = expand_inputs(options.inputs)
    settings = options.each.watch().settings
    named = {name: str(getattr(settings, name)) for name in ("out", "masks", "cutouts")}
    _check_several(options.each, len(inputs))
    targets = targets_of(inputs, named, options.format, settings.effect == "cutout")
    jobs = [_job(options, target, settings) for target in targets]
    _tell_of_left(inputs, console)
    jobs, skipped = _without_finished(options, jobs, console)
    for name in _folders(targets, named):
        make_folder(Path(name))
    force = options.each.force or options.skip_finished
    if len(targets) == 1:
        if not jobs:
            return {"skipped": skipped, "frames": 0}, 0
        return replay(replace(jobs[0], force=force), console, engine=engine)
    force = settle(_files_of(jobs, settings), force)
    return _run([replace(job, force=force) for job in jobs], skipped, console)


def _job(options: BulkOptions, target: ReplayTarget, settings: Settings) -> ReplayOptions:
    """The replay of one input."""
    flags = {**options.each.flags, **target.outputs}
    made_by = _digest(target.input, settings, options.each)
    pipes_pictures = options.format == "png"
    return replace(
        options.each, file=Path(target.input.path), flags=flags, made_by=made_by, pipes_pictures=pipes_pictures
    )


def _run(jobs: Sequence[ReplayOptions], skipped: Sequence[str], console: Console) -> tuple[dict[str, Any], int]:
    """All of them, with one progress; seconds are those of all work, opening and compiling included."""
    start = perf_counter()
    done, codes = list[dict[str, Any]](), [0]
    with console.frames(f"{len(jobs)} inputs") as report, ReplayEngine(console) as engine:
        for number, job in enumerate(jobs, 1):
            shown = _shifted(
                report, sum(summary["frames"] for summary in done), f"{number}/{len(jobs)} {job.file.name}"
            )
            try:
                summary, code = replay(job, console, shown, engine)
            except OutputError:
                raise
            except TexelflowError as error:
                console.warn(f"{job.file}: {error}" if str(job.file) not in str(error) else str(error))
                summary, code = {"file": str(job.file), "frames": 0, "error": str(error)}, BAD_INPUT
            for line in summary.get("written", ()):
                console.say(line)
            done.append(summary)
            codes.append(code)
            if code > BAD_INPUT and code != CUT_OFF:  # interrupted
                break
    failed = [summary["file"] for summary in done if "error" in summary]
    code = max(codes) if max(codes) > CUT_OFF else BAD_INPUT if BAD_INPUT in codes else max(codes)
    frames, seconds = sum(summary["frames"] for summary in done), perf_counter() - start
    return {
        "inputs": len(jobs) + len(skipped),
        "frames": frames,
        "seconds": round(seconds, 3),
        "frames_per_second": round(frames / seconds, 2) if seconds else 0.0,
        "failed": failed,
        "skipped": list(skipped),
        "interrupted": max(codes) > CUT_OFF,
        "runs": done,
    }, code


def _shifted(report: Report, before: int, what: str) -> Report:
    """Progress of one of several."""
    return lambda done, total: report(before + done, 0, what)


def _check_several(each: ReplayOptions, inputs: int) -> None:
    """Raise UsageError for what goes with one input alone."""
    lines = each.watch().settings.json_lines
    single = ("--window", each.window), ("--log", each.log), ("--trace", each.trace), ("--json-lines", lines)
    for flag, given in single:
        if given and inputs > 1:
            raise UsageError(f"{flag} goes with one input, not with {inputs}")


def _folders(targets: Sequence[ReplayTarget], named: Mapping[str, str]) -> Iterator[str]:
    """Those that are named, where files get names of their own in them, and those whose names might be files' names."""
    for name, path in named.items():
        if path and any(Path(target.outputs[name]) != Path(path) for target in targets):
            yield path
    yield from (folder for target in targets for folder in target.folders if Path(folder).suffix)


def _files_of(jobs: Sequence[ReplayOptions], settings: Settings) -> Files:
    """What all of them read and write."""
    each = [files_of(job, replace(settings, **_named(job))) for job in jobs]
    reads = dict.fromkeys(read for files in each for read in files.reads)
    return Files(tuple(reads), tuple(write for files in each for write in files.writes))


def _named(job: ReplayOptions) -> dict[str, Any]:
    return {name: job.flags.get(name, "") for name in ("out", "masks", "cutouts")}


def _without_finished(
    options: BulkOptions, jobs: list[ReplayOptions], console: Console
) -> tuple[list[ReplayOptions], list[str]]:
    """Those of which some output is not finished by the same settings, and the inputs of the others."""
    if not options.skip_finished:
        return jobs, []
    left, skipped = list[ReplayOptions](), list[str]()
    for job in jobs:
        outputs = [path for path in _named(job).values() if path]
        if outputs and job.made_by and all(finished_by(path) == job.made_by for path in outputs):
            skipped.append(str(job.file))
            console.note(
                f"skipped: {job.file}, {' and '.join(outputs)} {'is' if len(outputs) == 1 else 'are'} finished"
            )
        else:
            left.append(job)
    return left, skipped


def _digest(each: MediaInput, settings: Settings, options: ReplayOptions) -> str | None:
    """What tags a file that was finished: the program, and a digest of the input and of what decides its picture.

    None for a pipe, which may bring something else each time.
    """
    if each.kind == "stream":
        return None
    of_range = f"range={options.first},{options.last}", f"input={os.path.abspath(each.path)}"
    return made_of([*told_of_settings(settings), *of_range, *told_of_files(files_in(each))])


def _tell_of_left(inputs: Sequence[MediaInput], console: Console) -> None:
    for each in inputs:
        if each.left:
            names = ", ".join(each.left[:_MOST_LEFT]) + (" and others" if len(each.left) > _MOST_LEFT else "")
            console.note(f"{Path(each.path).parent}: {counted(len(each.left), 'name')} left, no picture: {names}")

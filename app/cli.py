"""The command line: all verbs with their options, and the exit code of each run.

0 done, 1 a check failed, 2 bad input or a machine that lacks something, 3 done with what a cut-off recording had,
70 a defect of the program, 130 interrupted, 143 terminated. Verbs load what they need when they run, so that help
comes at once.
"""

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from texelflow.gpu_delegate.base import debug
from texelflow.gpu_delegate.base.errors import OpenGLWarning, TexelflowError
from texelflow.gpu_delegate.base.wording import meant

from .archive_cli import archive_verb
from .bench_cli import bench
from .machine_cli import cache, tune_verb
from .model_cli import check_verb, inspect_verb
from .models_cli import models
from .opengl_options import opengl_chosen, opengl_of, with_opengl
from .settings.flags import with_settings
from .settings.settings import setting_meant
from .signals import EndedBySignal, StopFlag, exit_code, raising
from .streams import guarded
from .verb_options import (
    COMPLETION_ASKED,
    CpuOption,
    FirstOption,
    ForceOption,
    JsonOption,
    LastOption,
    ModelOption,
    QuietOption,
    ThreadsOption,
    frame_range,
    output_option,
    path_option,
    shell_option,
    window_option,
)  # fmt: skip

DEFECT = 70
INTERRUPTED = "interrupted"

app = typer.Typer(
    name="texelflow",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Segment people in live and recorded video on any GPU with OpenGL 4.3 or ES 3.1, and on the CPU without one.",
)
for group, name in ((bench, "bench"), (models, "models"), (cache, "cache")):
    app.add_typer(group, name=name)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"texelflow {version('texelflow')}")
        raise typer.Exit


def _show_completion(shell: str | None) -> None:
    if shell:
        from .completion import completion_script

        print(completion_script(shell), end="")
        raise typer.Exit


def _install_completion(shell: str | None) -> None:
    if shell:
        from .completion import install_completion

        print(install_completion(shell))
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_show_version)
    ] = False,
    install: Annotated[
        str | None,
        shell_option("--install-completion", help="Have Tab complete in new shells.", callback=_install_completion),
    ] = None,
    shown: Annotated[
        str | None,
        shell_option("--show-completion", help="Print what the shell reads for that.", callback=_show_completion),
    ] = None,
) -> None:
    """Options of the program itself."""


@app.command("replay")
@with_settings("replay")
def replay_verb(
    flags: dict[str, object],
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="Recordings (mp4, mkv, webm, mov, avi and others), pictures (PNG, JPEG, WebP, TIFF, "
            "BMP), folders of pictures, numbered pictures (shot_%04d.png), or - for a pipe.",
        ),
    ],
    first: FirstOption = "0",
    last: LastOption = None,
    log: Annotated[
        Path | None, path_option(metavar="FILE", help="Times and bytes of each frame: .json or .csv.")
    ] = None,
    trace: Annotated[
        Path | None, path_option(metavar="FILE", help="A time line for Perfetto or Chrome: .json.")
    ] = None,
    format: Annotated[
        str | None,
        output_option("--format", metavar="png|mp4|mkv|mov|webm", help="Of what goes into a folder."),
    ] = None,
    skip_existing: Annotated[
        bool,
        output_option("--skip-existing", help="Skip what is finished by the same settings; make the rest anew."),
    ] = False,
    force: ForceOption = False,
    window: Annotated[bool, window_option("--window", help="Play it in a window; ? there lists the keys.")] = False,
    speed: Annotated[float | None, window_option(metavar="FACTOR", help="Playback speed in a window: 0.5, 2.")] = None,
    loop: Annotated[bool, window_option("--loop", help="A window begins again at the end.")] = False,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="A file of settings, as live has it.")] = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> int:
    """Segment recordings and pictures, or find faces and hands: every frame, the same bytes each run. Or watch one.

    --out names a video, a folder, or - for a pipe; of a picture, it, --masks and --cutouts may also be x.png. A folder
    gets the frames of one recording as PNG files; of several inputs a video or a PNG file each, of the same name. Exit
    code 2 if any input was bad, else 3 if any was cut off
    and what there was has been done.
    """
    from .console import Console
    from .replay.bulk import BulkOptions, replay_all
    from .replay.replay_options import ReplayOptions
    from .replay.targets import parse_format
    from .verbs.verb_tables import show_replay, show_replays

    span, wanted = frame_range(first, last), parse_format(format)
    each = ReplayOptions(Path(), flags, *span, log, trace, window, speed, loop, force=force, config=config)
    settings = each.watch().settings
    pipe = "-" in (settings.out, settings.json_lines)
    console = Console(quiet=json or pipe, silent=quiet)
    with opengl_chosen(opengl_of(settings)):
        summary, code = replay_all(BulkOptions(inputs, each, wanted, skip_existing), console)
    (show_replays if "runs" in summary else show_replay)(summary, console)
    if json and not pipe:
        console.json(summary)
    return code


app.command("archive")(archive_verb)


@app.command("live")
@with_settings("live")
def live_verb(
    flags: dict[str, object],
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file of settings; saved while live runs, it counts at once.")
    ] = None,
    dump_config: Annotated[bool, typer.Option("--dump-config", help="Print such a file, and stop.")] = False,
    cameras: Annotated[bool, typer.Option("--list", help="List cameras and what they deliver, and stop.")] = False,
    latency: Annotated[
        bool, typer.Option("--latency-test", help="Flash the window, and measure when the camera sees it.")
    ] = False,
    window: Annotated[bool, window_option("--window/--no-window", help="Without one: record, or be a camera.")] = True,
    json: JsonOption = False,
) -> int:
    """Show a camera, a stream or a recording as it comes: the background blurred or replaced, or what is found.

    Every setting is an option here, a line of the file, and a row of the window's panel; ? there lists the keys.
    """
    from .console import Console
    from .settings.config import dump
    from .settings.config_watch import ConfigWatch

    console = Console(quiet=json)
    if cameras:
        from .capture.listing import show_cameras

        return show_cameras(console, json)
    watch = ConfigWatch(config, flags)
    pipe = "-" in (watch.settings.out, watch.settings.json_lines)
    console = Console(quiet=json or pipe)
    if dump_config:
        print(dump(watch.settings), end="")
        return 0
    with opengl_chosen(opengl_of(watch.settings)):
        if latency:
            from .bench.latency.latency_test import measure_latency, show_latency

            summary, code = measure_latency(watch.settings, console)
            show_latency(summary, console)
        else:
            from .verbs.live import live
            from .verbs.verb_tables import show_live

            summary, code = live(watch, console, window)
            show_live(summary, console)
    if json and not pipe:
        console.json(summary)
    return code


@app.command("demo")
@with_opengl
def demo_verb(
    folder: Annotated[
        Path | None, path_option("--out", metavar="DIR", help="Where the files go; out by default, anew each time.")
    ] = None,
    force: ForceOption = False,
    model: ModelOption = "selfie",
    window: Annotated[
        bool | None,
        typer.Option("--window/--no-window", help="Play the clip in a window, too; by default if there is a display."),
    ] = None,
    cpu: CpuOption = None,
    threads: ThreadsOption = None,
    json: JsonOption = False,
) -> int:
    """Segment the embedded clip: a recording, a still, a log, a table of what it took, and a window to watch it in."""
    from .console import Console
    from .displays import has_display
    from .verbs.demo import demo, watch_demo
    from .verbs.precision import parse_cpu

    console, choice = Console(quiet=json), parse_cpu(cpu, threads)
    figures, code = demo(folder, model, console, force, choice)
    if json:
        console.json(figures)
    wanted = has_display() if window is None else window
    return watch_demo(model, console, choice) if wanted and not code else code


app.command("check")(check_verb)
app.command("inspect")(inspect_verb)
app.command("tune")(tune_verb)


@app.command("doctor")
@with_opengl
def doctor_verb(
    developer: Annotated[
        bool, typer.Option("--developer", help="Also what only the program's own tests need.")
    ] = False,
    json: JsonOption = False,
) -> int:
    """Show what this machine has and lacks, and what to do. Exit code 2 if recordings cannot be segmented here."""
    from .console import Console
    from .verbs.doctor.doctor import doctor

    return doctor(Console(quiet=json), json, developer)


def main(arguments: list[str] | None = None, program: typer.Typer = app, name: str = "texelflow") -> int:
    """Run one verb, of this program or of another one, and return its exit code; every error is one line on stderr."""
    with guarded():
        return _run(arguments, program, name)


def _run(arguments: list[str] | None, program: typer.Typer, name: str) -> int:
    ended = StopFlag()
    if debug.level() < debug.RUN:
        os.environ.setdefault("EGL_LOG_LEVEL", "fatal")  # of a GPU that does not work, doctor tells
    try:
        with raising(ended), _warnings_as_lines():
            command = typer.main.get_command(program)
            if COMPLETION_ASKED in os.environ:
                from .completion import answer_completion

                return answer_completion(command, sys.argv[1:] if arguments is None else arguments)
            result: Any = command.main(arguments, prog_name=name, standalone_mode=False)
            sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except TexelflowError as error:
        return _complain(str(error), error.exit_code)
    except EndedBySignal as error:
        return _complain(INTERRUPTED, exit_code(error.number))
    except BrokenPipeError:  # the reader of our output has left
        return 0
    except Exception as error:
        if ended:
            return _complain(INTERRUPTED, exit_code(ended.number))
        if hasattr(error, "format_message"):  # Typer's complaints about arguments
            return _complain_of_usage(error)
        if debug.level() >= debug.RUN:
            raise
        what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        return _complain(f"this is a defect ({what}); DEBUG=1 shows where it happened", DEFECT)


@contextlib.contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """What drivers complain of is one line on stderr; other warnings are shown as Python does."""
    python_shows = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, OpenGLWarning):
            _complain(str(message), 0)
        else:
            python_shows(message, category, *rest, **more)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = python_shows


def _complain_of_usage(error: Any) -> int:
    """One line for what Typer prints in a box; without any argument it has shown the help already."""
    context, message = getattr(error, "ctx", None), error.format_message().rstrip(".")
    command = context.command_path if context else "texelflow"
    option, verb = getattr(error, "option_name", ""), re.match(r"No such command '(.*?)'", message)
    if context and option:
        names = (name for each in context.command.params for name in (*each.opts, *each.secondary_opts))
        message = f"No such option: {option}{setting_meant(option, names)}"
    elif context and verb:
        message = f"{verb[0]}{meant(verb[1], context.command.commands)}"
    end = "" if message.endswith("?") else ";"
    return _complain(f"{message}{end} `{command} --help` tells more", 2) if message else 2


def _complain(line: str, code: int) -> int:
    from .console import one_line

    print(f"texelflow: {one_line(line)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())

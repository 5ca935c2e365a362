"""Arguments of the command line go in; the verb's work is done, and its exit code comes out.

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
from typing import TYPE_CHECKING, Annotated, Any

import typer

from texelflow.gpu_delegate import debug
from texelflow.gpu_delegate.errors import OpenGLWarning, TexelflowError
from texelflow.gpu_delegate.wording import meant

from .archive_cli import archive_verb
from .bench_cli import bench
from .machine_cli import cache, tune_verb
from .models_cli import models
from .opengl_options import opengl_chosen, opengl_of, with_opengl
from .options import (
    COMPLETION_ASKED,
    ActivationOption,
    ChannelOption,
    CompileBudgetOption,
    CpuOption,
    FirstOption,
    ForceOption,
    InputRangeOption,
    JsonOption,
    LastOption,
    MemoryOption,
    ModelOption,
    OutputRangeOption,
    PlannerOption,
    PrecisionOption,
    ReorderOption,
    SignatureOption,
    TaskOption,
    ThreadsOption,
    output_option,
    shell_option,
    window_option,
)  # fmt: skip
from .settings.flags import with_settings
from .settings.settings import setting_meant
from .signals import EndedBySignal, StopFlag, exit_code, raising
from .streams import guarded

if TYPE_CHECKING:
    from .media.sources import Position
    from .models.spec import SpecOptions

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
            help="Recordings (mp4, mkv, webm, mov, avi and others), pictures (PNG, JPEG, WebP), folders of pictures, "
            "numbered pictures (shot_%04d.png), or - for a pipe.",
        ),
    ],
    first: FirstOption = "0",
    last: LastOption = None,
    log: Annotated[
        Path | None, output_option(metavar="FILE", help="Times and bytes of each frame: .json or .csv.")
    ] = None,
    trace: Annotated[
        Path | None, output_option(metavar="FILE", help="A time line for Perfetto or Chrome: .json.")
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
    json: JsonOption = False,
) -> int:
    """Segment recordings and pictures: every frame, with its own time stamps, the same bytes each run. Or watch one.

    --out names a video, a folder, or - for a pipe. A folder gets the frames of one recording as PNG files; of several
    inputs a video or a PNG file each, of the same name. Exit code 2 if any input was bad, else 3 if any was cut off
    and what there was has been done.
    """
    from .console import Console
    from .replay.bulk import BulkOptions, replay_all
    from .replay.options import ReplayOptions
    from .replay.targets import parse_format
    from .verbs.report import show_replay, show_replays

    span, wanted = _range(first, last), parse_format(format)
    each = ReplayOptions(Path(), flags, *span, log, trace, window, speed, loop, force=force, config=config)
    settings = each.watch().settings
    pipe = settings.out == "-"
    console = Console(quiet=json or pipe)
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
    """Show a camera, a stream or a recording as it comes, in a window with the background blurred or replaced.

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
    pipe = watch.settings.out == "-"
    console = Console(quiet=json or pipe)
    if dump_config:
        print(dump(watch.settings), end="")
        return 0
    with opengl_chosen(opengl_of(watch.settings)):
        if latency:
            from .bench.latency_test import measure_latency, show_latency

            summary, code = measure_latency(watch.settings, console)
            show_latency(summary, console)
        else:
            from .verbs.live import live
            from .verbs.report import show_live

            summary, code = live(watch, console, window)
            show_live(summary, console)
    if json and not pipe:
        console.json(summary)
    return code


@app.command("demo")
@with_opengl
def demo_verb(
    folder: Annotated[
        Path | None, output_option("--out", metavar="DIR", help="Where the files go; out by default, anew each time.")
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
    from .verbs.demo import demo, has_display, watch_demo
    from .verbs.precision import parse_cpu

    console, choice = Console(quiet=json), parse_cpu(cpu, threads)
    figures, code = demo(folder, model, console, force, choice)
    if json:
        console.json(figures)
    wanted = has_display() if window is None else window
    return watch_demo(model, console, choice) if wanted and not code else code


@app.command("check")
@with_opengl
def check_verb(
    target: Annotated[str, typer.Argument(metavar="CLIP|MODEL", help="A recording, or a model: name or .tflite file.")],
    model: ModelOption = "selfie",
    unfused: Annotated[bool, typer.Option("--unfused", help="A model: one dispatch per op, all tensors.")] = False,
    backend: Annotated[
        str,
        typer.Option(
            metavar="gl|native|delegate",
            help="What is checked: the GPU, the CPU's own code, or of a model the delegate.",
        ),
    ] = "gl",
    runs: Annotated[int | None, typer.Option(help="Of the delegate; 50 by default.")] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Allowed error; by default 1e-3 for masks (fp16: 0.2), 1e-4 of the magnitude for tensors, "
            "1e-3 of the range or magnitude for outputs (fp16: 0.1)."
        ),
    ] = None,
    report: Annotated[
        Path | None,
        output_option(
            metavar="FILE",
            help="Picture of a recording's worst frame: .png; texelflow-check.png on failure by default.",
        ),
    ] = None,
    force: ForceOption = False,
    signature: SignatureOption = None,
    first: FirstOption = "0",
    last: LastOption = None,
    input_range: InputRangeOption = None,
    activation: ActivationOption = None,
    channel: ChannelOption = None,
    task: TaskOption = None,
    output_range: OutputRangeOption = None,
    precision: PrecisionOption = "fp32",
    compile_budget: CompileBudgetOption = 10.0,
    preprocessing: Annotated[
        str,
        typer.Option(
            metavar="plain|auto",
            help="A recording: plain, as other programs do it, or auto, as replay and live do it; plain by default.",
        ),
    ] = "plain",
    json: JsonOption = False,
) -> int:
    """Compare GPU and CPU: the masks, or the network's pictures, of a recording's frames, or the tensors of a model.

    Exit code 1 if they differ, naming the first op that does.
    """
    from texelflow.gpu_delegate.compile_options import CompileOptions

    from .console import Console
    from .verbs.check import CheckOptions, run_check
    from .verbs.precision import checked_budget, parse_precision, parse_preprocessing

    spec = _spec(input_range, activation, channel, task, output_range)
    options = CheckOptions(
        model,
        backend,
        runs,
        tolerance,
        report,
        *_range(first, last),
        spec,
        json,
        CompileOptions(not unfused, False, parse_precision(precision), checked_budget(compile_budget)),
        parse_preprocessing(preprocessing),
        force,
        signature,
    )
    return run_check(target, options, Console(quiet=json))


@app.command("inspect")
@with_opengl
def inspect_verb(
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="A name of the catalogue or a .tflite.")] = None,
    unfused: Annotated[bool, typer.Option("--unfused", help="One dispatch per op.")] = False,
    ops: Annotated[
        bool, typer.Option("--ops", help="List ops instead, the model's or all: where each runs, types, cases.")
    ] = False,
    peaks: Annotated[bool, typer.Option("--peaks/--no-peaks", help="Measure the machine's peaks.")] = True,
    precision: PrecisionOption = "fp32",
    memory: MemoryOption = "arena",
    planner: PlannerOption = "",
    reorder: ReorderOption = False,
    compile_budget: CompileBudgetOption = 10.0,
    tuning: Annotated[
        str | None,
        typer.Option(
            metavar="hardware|software|FAMILY",
            help="Compile for such GPUs: intel, amd, nvidia, adreno, mali, videocore; by default for this machine's.",
        ),
    ] = None,
    shaders: Annotated[
        Path | None, output_option(metavar="DIR", help="Where the GLSL of every kernel goes, a file each.")
    ] = None,
    plot: Annotated[
        Path | None,
        output_option(metavar="FILE", help="A picture of the memory plan beside all other strategies': .svg or .png."),
    ] = None,
    force: Annotated[bool, output_option("--force", help="Write over the files that are there.")] = False,
    advise: Annotated[bool, typer.Option("--advise", help="Say what to change in the model.")] = False,
    cpu: Annotated[
        str | None, typer.Option("--cpu", metavar="native", help="Show the steps of the CPU's own code instead.")
    ] = None,
    signature: SignatureOption = None,
    json: JsonOption = False,
) -> int:
    """Show what becomes of a model: what runs on the GPU and why the rest does not, passes, dispatches, memory."""
    from texelflow.gpu_delegate.compile_options import CompileOptions

    from .console import Console
    from .verbs.inspect import InspectOptions, run_inspect
    from .verbs.precision import checked_budget, parse_memory, parse_precision

    asked, planned = parse_precision(precision), parse_memory(memory, planner, reorder)
    compiling = CompileOptions(not unfused, False, asked, checked_budget(compile_budget), planned)
    options = InspectOptions(json, ops, peaks, compiling, shaders, tuning, force, advise, cpu, plot, signature)
    return run_inspect(model, options, Console(quiet=json))


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
    from .verbs.doctor import doctor

    return doctor(Console(quiet=json), json, developer)


def _spec(
    input_range: str | None, activation: str | None, channel: str | None, task: str | None, output_range: str | None
) -> "SpecOptions":
    from .models.spec import SpecOptions, parse_range, parse_task

    return SpecOptions(
        None if input_range is None else parse_range(input_range),
        activation,
        channel,
        None if task is None else parse_task(task),
        None if output_range is None else parse_range(output_range, "--output-range"),
    )


def _range(first: str, last: str | None) -> "tuple[Position, Position | None]":
    from .media.sources import parse_position

    return parse_position(first), None if last is None else parse_position(last)


def main(arguments: list[str] | None = None) -> int:
    """Run one verb and return its exit code; every error is one line on stderr."""
    with guarded():
        return _run(arguments)


def _run(arguments: list[str] | None) -> int:
    ended = StopFlag()
    if debug.level() < debug.RUN:
        os.environ.setdefault("EGL_LOG_LEVEL", "fatal")  # of a GPU that does not work, doctor tells
    try:
        with raising(ended), _warnings_as_lines():
            command = typer.main.get_command(app)
            if COMPLETION_ASKED in os.environ:
                from .completion import answer_completion

                return answer_completion(command, sys.argv[1:] if arguments is None else arguments)
            result: Any = command.main(arguments, prog_name="texelflow", standalone_mode=False)
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

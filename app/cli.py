"""Arguments of the command line go in; the verb's work is done, and its exit code comes out.

0 done, 1 a check failed, 2 bad input or a machine that lacks something, 3 done with what a cut-off recording had,
70 a defect of the program, 130 interrupted. Verbs load what they need when they run, so that help comes at once.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gpu_delegate.errors import TexelflowError

INTERRUPTED, DEFECT = 130, 70
TRACEBACK = "TEXELFLOW_TRACEBACK"

app = typer.Typer(
    name="texelflow",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Segment people in recorded video on any OpenGL 4.3 GPU, and on the CPU where there is none.",
)
bench = typer.Typer(no_args_is_help=True, help="Measure speed: the frame job, or one model dispatch by dispatch.")
app.add_typer(bench, name="bench")

Model = Annotated[str, typer.Option("--model", "-m", metavar="NAME|FILE", help="A name of the catalogue or a .tflite.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout instead of tables.")]


@bench.command("frame")
def bench_frame_verb(
    model: Model = "selfie",
    size: Annotated[
        str | None, typer.Option(metavar="WxH", help="Frames of the demo clip in this size. [default: 640x480]")
    ] = None,
    frames: Annotated[Path | None, typer.Option(help="Own frames: .npy, uint8, (N, H, W, 4).")] = None,
    masks: Annotated[Path | None, typer.Option(help="Write the masks here: .npy, float32, (N, H, W).")] = None,
    warmup: Annotated[int, typer.Option(help="Runs before the clock counts.")] = 10,
    runs: Annotated[int, typer.Option(help="Runs that count.")] = 100,
    backend: Annotated[str, typer.Option(metavar="gl|cpu", help="Where the network runs.")] = "gl",
    precision: Annotated[str, typer.Option(metavar="fp32", help="Of the network's arithmetic.")] = "fp32",
    json: Json = False,
) -> int:
    """Time the frame job: an RGBA frame in RAM to a float32 mask of its size in RAM.

    Exit code 1 if the mask's mean differs from the CPU path's by more than 0.001.
    """
    from app.bench import FrameBench, bench_frame
    from app.console import Console

    console = Console(quiet=json)
    options = FrameBench(model, size, frames, masks, warmup, runs, backend, precision)
    figures, code = bench_frame(options, console)
    console.table("The frame job", ("figure", "value"), list(figures.items()))
    if code:
        console.warn(f"the mask's mean is {figures['mask_mean_error']:.2g} away from the CPU path's")
    if json:
        console.json(figures)
    return code


@app.command("check")
def check_verb(
    target: Annotated[str, typer.Argument(metavar="CLIP|MODEL", help="A recording, or a model: name or .tflite file.")],
    model: Model = "selfie",
    unfused: Annotated[bool, typer.Option("--unfused", help="A model: one dispatch per op, all tensors.")] = False,
    tolerance: Annotated[
        float | None, typer.Option(help="Allowed error. [default: 1e-3 for masks, 1e-4 of the magnitude for tensors]")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Picture of a recording's worst frame. [default: texelflow-check.png, on failure]"),
    ] = None,
    first: Annotated[str, typer.Option("--from", metavar="FRAME|TIME", help="The first frame.")] = "0",
    last: Annotated[str | None, typer.Option("--to", metavar="FRAME|TIME", help="The last frame.")] = None,
    input_range: Annotated[str | None, typer.Option(metavar="LO,HI", help="What black and white are.")] = None,
    activation: Annotated[str | None, typer.Option(metavar="none|sigmoid|softmax", help="Still to be done.")] = None,
    channel: Annotated[int | None, typer.Option(help="The class to show.")] = None,
    json: Json = False,
) -> int:
    """Compare GPU and CPU: the masks of a recording's frames, or the tensors of a model.

    Exit code 1 if they differ, naming the first op that does.
    """
    from app.check import CheckOptions, run_check
    from app.console import Console
    from app.sources import parse_position
    from app.spec import SpecOptions, parse_range

    spec = SpecOptions(None if input_range is None else parse_range(input_range), activation, channel)
    end = None if last is None else parse_position(last)
    options = CheckOptions(model, unfused, tolerance, report, parse_position(first), end, spec, json)
    return run_check(target, options, Console(quiet=json))


@app.command("inspect")
def inspect_verb(
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="A name of the catalogue or a .tflite.")] = None,
    unfused: Annotated[bool, typer.Option("--unfused", help="One dispatch per op.")] = False,
    ops: Annotated[bool, typer.Option("--ops", help="List the supported ops instead.")] = False,
    peaks: Annotated[bool, typer.Option("--peaks/--no-peaks", help="Measure the machine's peaks.")] = True,
    json: Json = False,
) -> int:
    """Show what becomes of a model: ops, passes, dispatches and what bounds them, memory."""
    from app.console import Console
    from app.inspect import InspectOptions, run_inspect

    return run_inspect(model, InspectOptions(unfused, json, ops, peaks), Console(quiet=json))


def main(arguments: list[str] | None = None) -> int:
    """Run one verb and return its exit code; every error is one line on stderr."""
    try:
        result: Any = typer.main.get_command(app).main(arguments, prog_name="texelflow", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except TexelflowError as error:
        return _complain(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if hasattr(error, "format_message"):  # Typer's complaints about arguments
            return _complain(f"{error.format_message()} Try: texelflow --help", 2)
        if os.environ.get(TRACEBACK):
            raise
        what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        return _complain(f"this is a defect ({what}); {TRACEBACK}=1 shows where it happened", DEFECT)


def _complain(line: str, code: int) -> int:
    print(f"texelflow: {' '.join(line.split())}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())

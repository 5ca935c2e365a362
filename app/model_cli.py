"""The command lines of `texelflow check` and `texelflow inspect`: a model compared on GPU and CPU, or explained."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .opengl_options import with_opengl
from .verb_options import (
    ActivationOption,
    ChannelOption,
    CompileBudgetOption,
    FirstOption,
    ForceOption,
    HybridOption,
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
    frame_range,
    output_option,
    path_option,
    refuse_given,
)

if TYPE_CHECKING:
    from .models.spec import SpecOptions


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
            help="Allowed error; by default 1e-3 for masks (fp16: 0.2, bf16: 0.7), 1e-4 of the magnitude for tensors, "
            "1e-3 of the range or magnitude for outputs (fp16: 0.1), 5e-3 for those of what finds things in a "
            "recording (fp16, 8 bits: 0.2)."
        ),
    ] = None,
    report: Annotated[
        Path | None,
        path_option(
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
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Measure on these pictures how well a model does its --task, classification, detection or "
            "segmentation: top-1 and top-5, COCO's mAP, mean IoU.",
        ),
    ] = None,
    output_range: OutputRangeOption = None,
    precision: PrecisionOption = "fp32",
    hybrid: HybridOption = "expanded",
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
    """Compare GPU and CPU: the masks, the network's pictures, or what is found, of a recording's frames, or the tensors
    of a model.

    Exit code 1 if they differ, naming the first op that does.

    With --data: TensorFlow Lite's reference kernels, XNNPACK, the GPU and native code side by side; exit code 1 if a
    figure of ours is lower than both of TensorFlow Lite's by more than --tolerance (0.01). Classes: DIR/labels.csv
    (FILE,CLASS), folders named by them, or names such as 285-cat.png; labels.txt names them. Boxes: a .json of COCO's
    form. Masks: cat_mask.png beside cat.jpg, a PNG of class numbers, 255 for none. Pictures are resized, bilinear; for
    classification the square in the middle, 0.875 of the shorter side. 8-bit inputs get bytes, floats --input-range,
    else what metadata say, else -1 to 1. See docs/evaluation.md.
    """
    from texelflow.gpu_delegate.plan.compile_options import CompileOptions

    from .console import Console
    from .verbs.check.check import CheckOptions, run_check
    from .verbs.precision import checked_budget, parse_hybrid, parse_precision, parse_preprocessing

    compiling = CompileOptions(not unfused, False, parse_precision(precision), checked_budget(compile_budget))
    if data is not None:
        from .models.spec import parse_range
        from .verbs.evaluation.task_evaluation import EvaluationOptions, evaluate_task, parse_evaluated

        given = {
            "--unfused": unfused or None, "--runs": runs, "--report": report, "--to": last, "--activation": activation,
            "--channel": channel, "--output-range": output_range,
        }  # fmt: skip
        refuse_given(given, "is not for --data: leave it out")
        console, low_high = Console(quiet=json), None if input_range is None else parse_range(input_range)
        asked = EvaluationOptions(
            parse_evaluated(task), data, low_high, tolerance, compiling, parse_hybrid(hybrid), signature
        )
        figures, code = evaluate_task(target, asked, console)
        if json:
            console.json(figures)
        return code
    spec = _spec(input_range, activation, channel, task, output_range)
    options = CheckOptions(
        model,
        backend,
        runs,
        tolerance,
        report,
        *frame_range(first, last),
        spec,
        json,
        compiling,
        parse_preprocessing(preprocessing),
        force,
        signature,
        parse_hybrid(hybrid),
    )
    return run_check(target, options, Console(quiet=json))


@with_opengl
def inspect_verb(
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="A name of the catalogue or a .tflite.")] = None,
    unfused: Annotated[bool, typer.Option("--unfused", help="One dispatch per op.")] = False,
    ops: Annotated[
        bool, typer.Option("--ops", help="List ops instead, the model's or all: where each runs, types, cases.")
    ] = False,
    peaks: Annotated[bool, typer.Option("--peaks/--no-peaks", help="Measure the machine's peaks.")] = True,
    precision: PrecisionOption = "fp32",
    hybrid: HybridOption = "expanded",
    memory: MemoryOption = "arena",
    planner: PlannerOption = "",
    reorder: ReorderOption = False,
    compile_budget: CompileBudgetOption = 10.0,
    tuning: Annotated[
        str | None,
        typer.Option(
            metavar="hardware|software|FAMILY",
            help="Compile for such GPUs: intel, intel-xe2, amd, nvidia, adreno, adreno-660, mali, videocore; by "
            "default for this machine's.",
        ),
    ] = None,
    shaders: Annotated[
        Path | None, path_option(metavar="DIR", help="Where the GLSL of every kernel goes, a file each.")
    ] = None,
    plot: Annotated[
        Path | None,
        path_option(metavar="FILE", help="A picture of the memory plan beside all other strategies': .svg or .png."),
    ] = None,
    force: Annotated[bool, output_option("--force", help="Write over the files that are there.")] = False,
    advise: Annotated[bool, typer.Option("--advise", help="Say what to change in the model.")] = False,
    cpu: Annotated[
        str | None, typer.Option("--cpu", metavar="native", help="Show the steps of the CPU's own code instead.")
    ] = None,
    signature: SignatureOption = None,
    json: JsonOption = False,
) -> int:
    """Show what becomes of a model: what live shows, what runs on the GPU and why not the rest, dispatches, memory."""
    from texelflow.gpu_delegate.plan.compile_options import CompileOptions

    from .console import Console
    from .verbs.inspect.inspect import InspectOptions, run_inspect
    from .verbs.precision import checked_budget, parse_hybrid, parse_memory, parse_precision

    asked, planned = parse_precision(precision), parse_memory(memory, planner, reorder)
    compiling = CompileOptions(not unfused, False, asked, checked_budget(compile_budget), planned)
    way = parse_hybrid(hybrid)
    options = InspectOptions(json, ops, peaks, compiling, shaders, tuning, force, advise, cpu, plot, signature, way)
    return run_inspect(model, options, Console(quiet=json))


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

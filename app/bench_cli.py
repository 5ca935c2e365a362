"""The command line of `texelflow bench`: a function for each measurement, with its options."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from .bench.model_times.model_aliases import BenchmarkCommand, alias_options
from .opengl_options import with_opengl
from .settings.flags import as_in_settings, with_options
from .tuning_option import with_tuning
from .verb_options import (
    CpuOption,
    ForceOption,
    HybridOption,
    JsonOption,
    LastOption,
    MemoryOption,
    ModelOption,
    PlannerOption,
    PrecisionOption,
    PreprocessingOption,
    SignatureOption,
    ThreadsOption,
    path_option,
    refuse_given,
)

BenchBackendOption = Annotated[
    str | None, typer.Option(metavar="gl|cpu", help="Where the network runs; gl by default.")
]
scenes_option, scenes_path = (
    partial(option, rich_help_panel="Scenes, with --scenes") for option in (typer.Option, path_option)
)
bench = typer.Typer(
    no_args_is_help=True, help="Measure the frame job, a model, memory, a live frame, or how good masks are."
)


@bench.command("frame")
@with_tuning
@with_opengl
def bench_frame_verb(
    model: ModelOption = "selfie",
    size: Annotated[
        str | None, typer.Option(metavar="WxH", help="Frames of the demo clip in this size; 640x480 by default.")
    ] = None,
    frames: Annotated[Path | None, typer.Option(metavar="FILE", help="Own frames: .npy, uint8, (N, H, W, 4).")] = None,
    masks: Annotated[
        Path | None, path_option(metavar="FILE", help="Write the masks here: .npy, float32, (N, H, W).")
    ] = None,
    force: ForceOption = False,
    warmup: Annotated[int, typer.Option(help="Runs before the clock counts.")] = 10,
    runs: Annotated[int, typer.Option(help="Runs that count.")] = 100,
    stages: Annotated[
        bool, typer.Option("--stages", help="Time each stage of a whole frame, drawn and read, on OpenGL and the CPU.")
    ] = False,
    effect: Annotated[
        str | None, typer.Option(metavar="EFFECT", help="What is drawn, with --stages; replace or findings by default.")
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(metavar="gl|cpu", help="Where the network runs; gl by default, both with --stages."),
    ] = None,
    cpu: CpuOption = None,
    threads: ThreadsOption = None,
    precision: PrecisionOption = "fp32",
    memory: MemoryOption = "arena",
    planner: PlannerOption = "",
    json: JsonOption = False,
) -> int:
    """Time the frame job: an RGBA frame in RAM to a float32 mask of its size in RAM, or to what is found in it.

    Exit code 1 if the mask's mean differs from the CPU path's by more than 0.001, or what is found by more than check
    allows.

    With --stages: a frame of a recording in RAM to its picture in RAM, as I420. All stages are waited for; on the CPU
    what goes up is copied. Models that find things bring their detectors. A way that cannot be had here is a line that
    says why, unless --backend names it; exit code 1 if none can.
    """
    from texelflow.gpu_delegate.plan.compile_options import CompileOptions

    from .bench.frame_bench import bench_frame
    from .bench.frame_bench_options import FrameBench
    from .bench.measuring.energy import energy_line
    from .console import Console
    from .verbs.precision import backend_for, parse_cpu, parse_memory, parse_precision

    console, choice = Console(quiet=json), parse_cpu(cpu, threads)
    where = backend_for(backend, choice)
    compiling = CompileOptions(precision=parse_precision(precision), memory=parse_memory(memory, planner))
    options = FrameBench(model, size, frames, masks, warmup, runs, where, compiling, force, choice)
    if stages:
        from .bench.frame_stages import WAYS, StagesBench, bench_stages, show_bench_stages

        refuse_given({"--masks": masks, "--force": force or None}, "is for the frame job: leave it or --stages out")
        asked = StagesBench(options, WAYS if backend is None else (where,), effect)
        figures, code = bench_stages(asked, console)
        show_bench_stages(figures, console)
        if json:
            console.json(figures)
        return code
    refuse_given({"--effect": effect}, "is for whole frames: add --stages")
    figures, code = bench_frame(options, console)
    shown = [(name, str(value)) for name, value in figures.items() if name != "energy"]
    console.table("The frame job", ("figure", "value"), shown)
    console.say(energy_line(figures["energy"]))
    if code:
        console.warn(
            f"the mask's mean is {figures['mask_mean_error']:.2g} away from the CPU path's"
            if "mask_mean_error" in figures
            else "what is found is not what TensorFlow Lite finds"
        )
    if json:
        console.json(figures)
    return code


def bench_model_verb(
    aliases: dict[str, str],
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL", help="A name of the catalogue, a published network (mobilenet-v1), or a .tflite; selfie."
        ),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            metavar="gl|cpu|delegate",
            help="Where it runs; gl by default, through the delegate what runs there in part alone.",
        ),
    ] = None,
    warmup: Annotated[int | None, typer.Option(metavar="N", help="Runs before the clock counts; 10.")] = None,
    runs: Annotated[int | None, typer.Option(metavar="N", help="Runs that count; 100.")] = None,
    duration: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Run for so long instead, and plot milliseconds over time.")
    ] = None,
    plot: Annotated[Path | None, path_option(metavar="FILE", help="That plot as a picture: .png.")] = None,
    force: ForceOption = False,
    cpu: Annotated[
        str | None,
        typer.Option(
            metavar="native|tflite",
            help="On the CPU: code made for it, TensorFlow Lite for what has none; or that alone, as by default.",
        ),
    ] = None,
    threads: Annotated[int | None, typer.Option(metavar="N", help="On the CPU.")] = None,
    per_op: Annotated[bool, typer.Option("--per-op", help="Time each dispatch, too.")] = False,
    unfused: Annotated[bool, typer.Option("--unfused", help="One dispatch per op.")] = False,
    precision: Annotated[str | None, as_in_settings("precision")] = None,
    hybrid: HybridOption = "expanded",
    memory: Annotated[str | None, as_in_settings("memory")] = None,
    planner: Annotated[str | None, as_in_settings("planner")] = None,
    compile_budget: Annotated[float | None, as_in_settings("compile_budget")] = None,
    signature: SignatureOption = None,
    json: JsonOption = False,
) -> int:
    """Time a model on the GPU, on the CPU or through the delegate: runs to warm up, then the mean of many.

    --backend cpu is TensorFlow Lite or, with --cpu native, code made for this CPU; delegate TensorFlow Lite with our
    delegate. gl runs the network alone: inputs and
    outputs stay on the GPU. Joules are told where the machine has a counter that may be read.
    """
    from .bench.model_times.model_bench import bench_model
    from .bench.model_times.model_options import parse_options
    from .bench.model_times.model_report import finish_model
    from .console import Console

    options = parse_options(
        {
            "model": model, "backend": backend, "warmup": warmup, "runs": runs, "duration": duration, "plot": plot,
            "force": force, "threads": threads, "cpu": cpu, "per_op": per_op or None, "unfused": unfused or None,
            "precision": precision, "hybrid": hybrid, "memory": memory, "planner": planner,
            "compile_budget": compile_budget, "signature": signature,
        },
        aliases,
    )  # fmt: skip
    console = Console(quiet=json)
    if options.list_signatures:
        from .bench.model_times.signature_list import list_signatures

        return list_signatures(options, console, json)
    figures, code = bench_model(options, console)
    finish_model(figures, options, console)
    if json:
        console.json(figures)
    return code


bench.command("model", cls=BenchmarkCommand)(with_tuning(with_opengl(with_options(bench_model_verb, alias_options()))))


@bench.command("models")
@with_opengl
def bench_models_verb(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAMES", help="Models as of `bench model`; all of the catalogue, and published networks."
        ),
    ] = None,
    warmup: Annotated[int, typer.Option(metavar="N", help="Runs before the clock counts.")] = 10,
    runs: Annotated[int, typer.Option(metavar="N", help="Runs that count.")] = 100,
    threads: Annotated[
        str, typer.Option(metavar="N,N", help="Of TensorFlow Lite on the CPU, to compare with.")
    ] = "1,2",
    markdown: Annotated[bool, typer.Option("--markdown", help="The table in Markdown.")] = False,
    json: JsonOption = False,
) -> int:
    """Time many models on the GPU and on the CPU, as one table of means.

    Each is measured in processes of its own: one that fails is a row that says why. Ctrl-C keeps the rows done.
    """
    from .bench.model_times.model_table import ModelTable, bench_models, parse_threads, show_models_table
    from .console import Console

    console = Console(quiet=json)
    rows, code = bench_models(ModelTable(tuple(names or ()), warmup, runs, parse_threads(threads)), console)
    show_models_table(rows, markdown, console)
    if json:
        console.json({"models": rows})
    return code


@bench.command("memory")
def bench_memory_verb(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAMES",
            help="Models of the catalogue, published networks, .tflite files; by default twelve networks.",
        ),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="The tables in Markdown.")] = False,
    plot: Annotated[Path | None, path_option(metavar="FILE", help="Bars of each way to plan: .svg or .png.")] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="The tables of arXiv 2001.03288, beside what is published of them.")
    ] = False,
    force: ForceOption = False,
    json: JsonOption = False,
) -> int:
    """Compare how strategies plan the memory of networks, before fusion and after: bytes, objects, bounds, time.

    Nothing runs. Without names, greedy strategies and ours plan 10,000 synthetic records, too.
    """
    from .bench.memory_plans.memory_bench import MemoryBench, bench_memory
    from .bench.memory_plans.memory_tables import show_memory
    from .bench.memory_plans.paper_tables import show_paper
    from .console import Console

    console = Console(quiet=json)
    rows, code = bench_memory(MemoryBench(tuple(names or ()), plot, force, paper), console)
    show = show_paper if paper else show_memory
    show(rows, markdown, console)
    if plot is not None and rows:
        from .bench.memory_plans.strategy_plot import save_memory_bars

        save_memory_bars(plot, rows)
        console.say(f"plot: {plot}")
    if json:
        console.json(rows)
    return code


@bench.command("waits")
@with_opengl
def bench_waits_verb(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A name of the catalogue or a .tflite.")] = "selfie",
    runs: Annotated[int, typer.Option(metavar="N", help="Runs of each wait type that count.")] = 100,
    json: JsonOption = False,
) -> int:
    """Time the delegate's ways to wait for the GPU: latency, and how busy the CPU is meanwhile."""
    from .bench.model_times.waits import bench_waits, show_waits
    from .console import Console

    console = Console(quiet=json)
    figures = bench_waits(model, runs, console)
    show_waits(figures, console)
    if json:
        console.json(figures)
    return 0


@bench.command("live")
@with_opengl
def bench_live_verb(
    model: ModelOption = "selfie",
    size: Annotated[str, typer.Option(metavar="WxH", help="Of the test pattern.")] = "640x480",
    effect: Annotated[str, typer.Option(metavar="EFFECT", help="What is drawn.")] = "blur",
    backend: BenchBackendOption = None,
    cpu: CpuOption = None,
    threads: ThreadsOption = None,
    frames: Annotated[int, typer.Option(help="Frames that count, with the overlay and without.")] = 120,
    json: JsonOption = False,
) -> int:
    """Measure what Python costs for each frame of live, beside OpenGL, and how long it holds the interpreter's lock."""
    from .bench.live_cost import LiveBench, bench_live, show_bench_live
    from .console import Console
    from .verbs.precision import backend_for, parse_cpu

    console, chosen = Console(quiet=json), backend_for(backend, parse_cpu(cpu, threads))
    options = LiveBench(model, size, effect, chosen, frames, cpu or "auto", threads or 0)
    figures = bench_live(options, console)
    show_bench_live(figures, console)
    if json:
        console.json(figures)
    return 0


@bench.command("gpu")
@with_opengl
def bench_gpu_verb(
    report: Annotated[Path, path_option(metavar="DIR", help="The folder for report.json, .html and .zip.")],
    budget: Annotated[str, typer.Option(metavar="TIME", help="That it may take: 90s or 7m.")] = "450s",
    only: Annotated[str | None, typer.Option(metavar="SECTIONS", help="Some alone, by commas: device,peaks.")] = None,
    peers: Annotated[
        Path | None, typer.Option(metavar="PYTHON", help="An interpreter that has mediapipe or ai-edge-litert.")
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> int:
    """Measure all that the program does on this GPU, and write a report that can be attached to an issue.

    Nothing is fetched, and names, paths and serial numbers are left out. Ctrl-C keeps what was measured.
    """
    from .bench.gpu_report.gpu_bench import GpuBench, bench_gpu, show_gpu_bench
    from .console import Console
    from .verbs.tune import parse_budget

    console = Console(quiet=json)
    figures, code = bench_gpu(GpuBench(report, parse_budget(budget), only, peers, force), console)
    show_gpu_bench(figures, report, console)
    if json:
        console.json(figures)
    return code


@bench.command("quality")
@with_opengl
def bench_quality_verb(
    clip: Annotated[
        Path | None, typer.Argument(metavar="CLIP", help="One of assets/make_clip.py; by default the demo's.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="The seed of such a clip, which its mattes follow from; 0.")
    ] = None,
    mattes: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The mattes of any other clip: 000.png and on, gray.")
    ] = None,
    last: LastOption = None,
    scenes: Annotated[
        bool, scenes_option("--scenes", help="Photographs in rooms and before other backgrounds, not a clip.")
    ] = False,
    part: Annotated[
        str | None,
        scenes_option(metavar="tuned|judged|all", help="Those that filters are tuned on, or the others; judged."),
    ] = None,
    conditions: Annotated[
        str | None, scenes_option(metavar="NAMES", help="Some conditions alone, by commas: still,motion,noise 10.")
    ] = None,
    only: Annotated[
        str | None, scenes_option(metavar="WORDS", help="Scenes whose names hold one of these words, by commas.")
    ] = None,
    groups: Annotated[
        str | None,
        scenes_option(metavar="NAMES", help="Of plain, gap, hats, hands, held, worn, or all, by commas; plain."),
    ] = None,
    steps: Annotated[
        str | None,
        scenes_option(
            metavar="STEPS",
            help="Of raw, input, smooth, edges, both, delayed, detail, held, python (the library's): raw,both.",
        ),
    ] = None,
    frames: Annotated[int | None, scenes_option(metavar="N", help="Of each row, at most; 12 to 24.")] = None,
    sheet: Annotated[
        Path | None,
        scenes_path(metavar="FILE", help="A picture, .png, for your eyes alone: some photographs may not be shown."),
    ] = None,
    force: ForceOption = False,
    model: ModelOption = "selfie",
    backend: Annotated[str, typer.Option(metavar="gl|cpu", help="Where the network runs.")] = "gl",
    precision: PrecisionOption = "fp32",
    preprocessing: PreprocessingOption = "auto",
    json: JsonOption = False,
) -> int:
    """Measure masks against true mattes, with each step of refinement on and off: edges, flicker, lag.

    With --scenes: islands, holes, lengths of outlines, colors over a new background, and the targets that are reached.
    """
    from .bench.quality.quality import QualityBench, bench_quality, show_quality
    from .bench.quality.scenes import bench_scenes, choose_scenes
    from .console import Console
    from .media.sources import parse_position
    from .verbs.precision import parse_precision, parse_preprocessing

    console = Console(quiet=json)
    arithmetic, way_in = parse_precision(precision), parse_preprocessing(preprocessing)
    of_clips = {"CLIP": clip, "--seed": seed, "--mattes": mattes, "--to": last}
    of_scenes = {
        "part": part, "conditions": conditions, "only": only, "groups": groups, "steps": steps, "frames": frames,
        "sheet": sheet, "force": force or None,
    }  # fmt: skip
    if scenes:
        refuse_given(of_clips, "is for a clip; --scenes has frames of its own")
        chosen = choose_scenes(of_scenes, model, backend, arithmetic, way_in)
        figures = bench_scenes(chosen, console)
    else:
        refuse_given({f"--{name}": value for name, value in of_scenes.items()}, "is for --scenes")
        end = None if last is None else parse_position(last)
        options = QualityBench(model, clip, seed or 0, mattes, end, backend, arithmetic, way_in)
        figures = bench_quality(options, console)
        show_quality(figures, console)
    if json:
        console.json(figures)
    return 0

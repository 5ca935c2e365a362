"""Times the cases of ops on the GPU, in the CPU's own code and in TensorFlow Lite.

All cases of an op are one model, so that a run of it is as many small dispatches as there are cases, and one large one.
What is measured runs in turn; outputs are compared with those of TensorFlow Lite's own kernels.

    python -m tests.tools.ops                            # all ops, on each backend that is there
    python -m tests.tools.ops CONV_2D softmax --backend native,tflite --seconds 1
"""

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Annotated, Any

import typer

from tests.helpers.case_group import CaseGroup
from tests.tools.command import run_tool
from texelflow.app.console import Console, counted
from texelflow.app.opengl_options import with_opengl
from texelflow.app.signals import StopFlag, exit_code, stop_flag
from texelflow.app.verb_options import JsonOption
from texelflow.gpu_delegate.base.errors import DeviceError, ModelError, UnsupportedError, UsageError
from texelflow.gpu_delegate.base.wording import meant
from texelflow.gpu_delegate.cases.op_case import CaseArray
from texelflow.gpu_delegate.cases.table import cases_of
from texelflow.gpu_delegate.cpu.interpreter_module import load_interpreter_module
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.ops.registry import OPS, SUPPORTED_OPS
from texelflow.gpu_delegate.reading.model_file import printable_name
from texelflow.gpu_delegate.reading.writer import write_model
from texelflow.gpu_delegate.targets.gl.context import Context, open_context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.targets.llvm.compiler import available
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork
from texelflow.gpu_delegate.targets.llvm.pool import MOST_POOL_THREADS
from texelflow.gpu_delegate.tuning.store import tuned_device

from .in_turn import call_in_turn

BACKENDS = ("gl", "native", "tflite")
_MOST_SECONDS = 60.0
_Row = dict[str, Any]
_Call = Callable[[], object]


@dataclass(frozen=True)
class OpsBench:
    """What the tool is asked to do."""

    names: tuple[str, ...] = ()  # none: all ops
    backend: str | None = None  # some of BACKENDS with commas between them; all that are there by default
    seconds: float = 0.2  # of each op, for all together
    threads: int = 1
    seed: int = 0


def bench_ops(options: OpsBench, console: Console) -> tuple[_Row, int]:
    """Measure: the figures, and the exit code: a signal's, or 1 if outputs differ. Raises TexelflowError."""
    names, backends = parse_ops(options.names), _backends(options, console)
    rows, differs = list[_Row](), False
    with contextlib.ExitStack() as stack, stop_flag() as stop:
        context = stack.enter_context(open_context()) if "gl" in backends else None
        where = context.renderer if context else None
        with console.steps("ops") as report:
            for number, op in enumerate(names):
                report(number, len(names), op)
                if stop:
                    break
                rows.append(_measured(op, options, backends, context, stop))
                if wrong := rows[-1]["differing"]:
                    differs = True
                    first = min(wrong)
                    console.warn(f"{first} differs from TensorFlow Lite by {max(wrong[first].values()):.2g}")
        rows = [row for row in rows if row["times"] or row["reasons"]]
        figures = {"renderer": where, "threads": options.threads, "ops": rows, "interrupted": bool(stop)}
        return figures, exit_code(stop.number) or int(differs)


def parse_ops(names: Sequence[str]) -> tuple[str, ...]:
    """Ops by their names, in any case of letters; all for none. Raises UsageError."""
    known = {op.casefold(): op for op in SUPPORTED_OPS}
    for name in names:
        if name.casefold() not in known:
            shown = printable_name(name)
            close = meant(shown, SUPPORTED_OPS)
            raise UsageError(f"{shown}: no op of that name is known{close}; `texelflow inspect --ops` lists them")
    return tuple(dict.fromkeys(known[name.casefold()] for name in names)) or tuple(sorted(SUPPORTED_OPS))


def _backends(options: OpsBench, console: Console) -> tuple[str, ...]:
    """Those asked for; of those not named, those that this machine has. Raises UsageError."""
    if not 1 <= options.threads <= MOST_POOL_THREADS:
        raise UsageError(f"--threads {options.threads}: it goes from 1 to {MOST_POOL_THREADS}")
    if not 0 < options.seconds <= _MOST_SECONDS:
        raise UsageError(f"--seconds {options.seconds:g}: seconds from just above 0 to {_MOST_SECONDS:g} are needed")
    if options.backend is not None:
        asked = tuple(dict.fromkeys(options.backend.split(",")))
        for name in asked:
            if name not in BACKENDS:
                wanted = f"{', '.join(BACKENDS)}, with commas between them, are needed{meant(name, BACKENDS)}"
                raise UsageError(f"--backend {printable_name(options.backend)}: {wanted}")
        return asked
    found = list(BACKENDS)
    if why := available():
        console.note(f"without our own code for the CPU: {why}")
        found.remove("native")
    try:
        with open_context():
            pass
    except DeviceError as error:
        console.note(f"without OpenGL: {error}")
        found.remove("gl")
    return tuple(found)


def _measured(op: str, options: OpsBench, backends: Sequence[str], context: Context | None, stop: StopFlag) -> _Row:
    """Times by backend, what differs, and why something is not there."""
    group = CaseGroup(cases_of(op), options.seed)
    row: _Row = {"op": op, "cases": len(group.cases), "times": {}, "differing": {}, "errors": {}, "reasons": {}}
    inputs = group.inputs(options.seed + 1)
    wanted = _reference(group.graph, inputs, row)
    with contextlib.ExitStack() as stack:
        calls = dict[str, _Call]()
        for name in backends:
            try:
                _check_role(op, name)
                call, found = _OPEN[name](stack, group.graph, inputs, options.threads, context)
            except (UnsupportedError, ModelError, DeviceError) as error:
                row["reasons"][name] = str(error).rpartition(" does not run on the GPU: ")[2]
                continue
            calls[name] = call
            if wanted is not None and name != "tflite":
                _judge(group, name, found, wanted, row)
        if calls:
            taken = call_in_turn(calls, options.seconds, options.threads, partial(bool, stop))
            row["times"] = {name: times.figures() for name, times in taken.items() if times.wall_s}
    return row


def _check_role(op: str, backend: str) -> None:
    """Raises UnsupportedError for an op that we compute before anything runs, and for one of other programs alone."""
    form = OPS[op].file
    if form is not None and form.is_custom and backend == "tflite":
        raise UnsupportedError("a custom op, of which it has no kernel")
    if OPS[op].role == "folded" and backend != "tflite":
        raise UnsupportedError("known before it runs")


def _judge(group: CaseGroup, name: str, found: Sequence[CaseArray], wanted: Sequence[CaseArray], row: _Row) -> None:
    row["errors"][name] = max(group.errors(found, wanted).values())
    for case, error in group.differing(found, wanted).items():
        row["differing"].setdefault(case, {})[name] = error


def _reference(graph: Graph, inputs: Sequence[CaseArray], row: _Row) -> Sequence[CaseArray] | None:
    """What TensorFlow Lite's own kernels give; None where it has none."""
    try:
        _check_role(row["op"], "tflite")
        return Reference(graph, keep_all_tensors=True).run(inputs)
    except (UnsupportedError, ModelError) as error:
        row["reasons"]["tflite"] = str(error)
        return None


_Opened = tuple[_Call, Sequence[CaseArray]]  # one run, and the outputs of the first


def _open_gl(
    stack: contextlib.ExitStack, graph: Graph, inputs: Sequence[CaseArray], threads: int, context: Context | None
) -> _Opened:
    assert context, "opened where it is asked for"
    program = stack.enter_context(Program(context, compile_graph(graph, tuned_device(context))))
    for tensor, values in zip(graph.inputs, inputs, strict=True):
        program.write(tensor, values)

    def call() -> None:
        program.run()
        context.gl.glFinish()

    call()
    return call, [program.read(tensor) for tensor in graph.outputs]


def _open_native(
    stack: contextlib.ExitStack, graph: Graph, inputs: Sequence[CaseArray], threads: int, context: Context | None
) -> _Opened:
    network = stack.enter_context(contextlib.closing(NativeNetwork.load(graph, threads)))
    return network.compute, network.run(inputs)


def _open_tflite(
    stack: contextlib.ExitStack, graph: Graph, inputs: Sequence[CaseArray], threads: int, context: Context | None
) -> _Opened:
    """With what it uses by default, XNNPACK where that has kernels."""
    interpreter = load_interpreter_module().Interpreter(model_content=write_model(graph), num_threads=threads)
    try:
        interpreter.allocate_tensors()
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"TensorFlow Lite: {error}") from error
    for place, values in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(place["index"], values)
    return interpreter.invoke, ()


_OPEN: Mapping[str, Callable[..., _Opened]] = {"gl": _open_gl, "native": _open_native, "tflite": _open_tflite}
_TITLES = {"gl": "GPU", "native": "CPU", "tflite": "TensorFlow Lite"}


def show_ops_bench(figures: Mapping[str, Any], console: Console) -> None:
    """A table of medians, and what is faster by how much."""
    rows = figures["ops"]
    there = [name for name in BACKENDS if any(name in row["times"] for row in rows)]
    ours = [name for name in there if name != "tflite" and "tflite" in there]
    titles = ["op", "cases", *(f"{_TITLES[name]} us" for name in there)]
    titles += [f"{_TITLES[name]} speed-up" for name in ours]
    cells = [
        [row["op"], row["cases"], *(_us(row, name) for name in there), *(_ratio(row, name) for name in ours)]
        for row in rows
    ]
    if any(row["reasons"] for row in rows):
        titles.append("why not")
        for row, line in zip(rows, cells, strict=True):
            line.append("; ".join(f"{_TITLES[name]}: {why}" for name, why in row["reasons"].items()))
    if not rows:
        return
    console.table("Ops: medians of one run of all their cases", titles, cells, dense=True)
    for name in ours:
        ratios = [found for row in rows if (found := _speed_up(row, name)) is not None]
        if ratios:
            console.say(f"{_TITLES[name]}: {median(ratios):.2f} times as fast as TensorFlow Lite in the median of ops")
    where = [f"GPU: {figures['renderer']}"] if figures["renderer"] else []
    where += [f"CPU, our own code, and TensorFlow Lite with XNNPACK: {counted(figures['threads'], 'thread')}"]
    console.say("; ".join(where))
    if figures["interrupted"]:
        console.note(f"interrupted after {len(rows)} ops")


def _speed_up(row: _Row, name: str) -> float | None:
    times = row["times"]
    if name not in times or "tflite" not in times:
        return None
    return float(times["tflite"]["median_us"] / times[name]["median_us"])


def _ratio(row: _Row, name: str) -> str:
    found = _speed_up(row, name)
    return "-" if found is None else f"{found:.2f}"


def _us(row: _Row, name: str) -> str:
    return f"{row['times'][name]['median_us']:.0f}" if name in row["times"] else "-"


@with_opengl
def ops_tool(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAMES", help="Such as CONV_2D and softmax; by default all ops.")
    ] = None,
    backend: Annotated[
        str | None, typer.Option(metavar="gl,native,tflite", help="Where they run; by default on each that is there.")
    ] = None,
    seconds: Annotated[float, typer.Option(metavar="N", help="For each op, all in turn.")] = 0.2,
    threads: Annotated[int, typer.Option(metavar="N", help="Of the CPU, ours and TensorFlow Lite's.")] = 1,
    seed: Annotated[int, typer.Option(metavar="N", help="Of constants and inputs.")] = 0,
    json: JsonOption = False,
) -> int:
    """Time the cases of each op on the GPU, in our code for the CPU and in TensorFlow Lite, and compare outputs.

    An op has 10 to 50 cases: odd sizes, 1 to 13 channels, batches, its options, and a large one. Exit code 1 if outputs
    differ from TensorFlow Lite's. Ctrl-C keeps the ops done.
    """
    console = Console(quiet=json)
    figures, code = bench_ops(OpsBench(tuple(names or ()), backend, seconds, threads, seed), console)
    show_ops_bench(figures, console)
    if json:
        console.json(figures)
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    return run_tool("ops", ops_tool, arguments)


if __name__ == "__main__":
    sys.exit(main())

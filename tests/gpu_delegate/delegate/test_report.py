"""The report of what runs where: in the original's words, then the reasons, in a bounded number of lines."""

from tests.gpu_delegate.delegate.test_selection import DEAR, chain
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.delegate.report import claim_line, reason_lines, report_lines, summary_line
from texelflow.gpu_delegate.delegate.selection import selection
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import compile_partitions

UNKNOWN = "a custom op that is not known here"


def lines_of(graph: Graph) -> tuple[str, ...]:
    return report_lines(compile_partitions(graph, SOFTWARE))


def test_nothing_is_said_of_a_model_that_runs_whole() -> None:
    assert lines_of(chain("RELU", "CONV")) == ()


def test_the_first_operations_run_on_the_gpu() -> None:
    assert lines_of(chain("RELU", "CONV", "CPU")) == (
        "First 2 operations will run on the GPU, and the remaining 1 on the CPU.",
        f"TheirOwnOp (2): {UNKNOWN}",
    )


def test_others_than_the_first_run_on_the_gpu() -> None:
    """One line for all operators of an op that have the same reason."""
    assert lines_of(chain("RELU", "CPU", "CPU", "RELU", "CPU")) == (
        "2 operations will run on the GPU, and the remaining 3 on the CPU.",
        f"TheirOwnOp (1-2, 4): {UNKNOWN}",
    )


def test_no_operation_runs_on_the_gpu() -> None:
    assert lines_of(chain("CPU"))[0] == "No operations will run on the GPU, and all 1 operations will run on the CPU."


def test_partitions_that_do_not_pay_are_one_line_for_each_op() -> None:
    found = compile_partitions(chain("RELU", "CPU", "RELU", "CONV", "CPU", "RELU"), SOFTWARE, select=selection(DEAR))
    lines = reason_lines(found)
    assert len(lines) == 3
    (relu,) = (line for line in lines if line.startswith("RELU"))
    assert relu.startswith("RELU (0, 2, 5): its partition costs more than the work that it takes over: ")
    assert relu.endswith("in 1 operator); other partitions likewise")


def test_lines_are_bounded_in_number_and_length() -> None:
    network = Sketch(0)
    x = network.image(2, 2, 4)
    for number in range(300):
        x = network.op(f"Op{number % 60}" if number % 2 else "RELU", [x], network.shape(x))
    network.output(x)
    found = compile_partitions(read_model(network.build()), SOFTWARE, select=selection(DEAR))
    lines = reason_lines(found)
    assert len(lines) == 41 - 10
    network = Sketch(0)
    x = network.image(2, 2, 4)
    for number in range(300):
        x = network.op(f"Op{number}", [x], network.shape(x))
    network.output(x)
    lines = report_lines(compile_partitions(read_model(network.build()), SOFTWARE))
    assert len(lines) == 42
    assert lines[-1] == "... and 260 lines more"
    assert max(map(len, lines)) < 400


def test_the_summary_tells_the_three_apart() -> None:
    found = compile_partitions(chain("RELU", "CPU", "CONV", "CPU", "RELU"), SOFTWARE)
    line = summary_line([found], 0, 2)
    assert line == "3 of 5 operators on the GPU in 3 partitions (3 dispatches), 2 by builtin kernels"
    nothing = compile_partitions(chain("CPU", "CPU"), SOFTWARE)
    assert summary_line([nothing], 1, 1) == "0 of 2 operators on the GPU, 1 by XNNPACK, 1 by builtin kernels"
    whole = compile_partitions(chain("RELU"), SOFTWARE)
    assert summary_line([whole], 0, 0) == "1 of 1 operator on the GPU in 1 partition (1 dispatch)"
    assert claim_line(whole) == ""

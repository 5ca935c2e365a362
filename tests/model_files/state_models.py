"""Models with operators that stay on the CPU in any form, most because of their states."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tests.model_files.model_builder import ModelBuilder
from tests.model_files.sketch import Sketch

ABSENT = -1


def _drawn(draw: Callable[[Sketch], int]) -> bytes:
    m = Sketch(seed=5)
    m.output(m.unary("TANH", draw(m)))
    return m.build()


def svdf(m: Sketch) -> int:
    """4 units of rank 2 that look 5 steps back."""
    x = m.connected(m.input((2, 7)), 6)
    state = m.tensor((2, 8 * 5), is_variable=True)
    inputs = [x, m.random(8, 6), m.random(8, 5), m.random(4), state]
    return m.op("SVDF", inputs, (2, 4), table="SVDFOptions", rank=2, activation="RELU")


def lstm(m: Sketch) -> int:
    """Its full kernel, on one step."""
    x = m.connected(m.input((2, 7)), 6)
    inputs = lstm_inputs(m, 6, 5, 5)
    return m.op("LSTM", [x, *inputs], (2, 5), activation="TANH")


def sequence(
    m: Sketch, cifg: bool = False, peephole: bool = False, projection: int = 0, norm: bool = False,
    time_major: bool = False, **limits: Any,
) -> int:  # fmt: skip
    """UNIDIRECTIONAL_SEQUENCE_LSTM over 4 steps of 2 rows, in each of its forms."""
    units, shape = 5, (4, 2) if time_major else (2, 4)
    x = m.unary("RELU", m.input((*shape, 6)))
    inputs = lstm_inputs(m, 6, units, projection or units, cifg, peephole, bool(projection), norm)
    table, outputs = "UnidirectionalSequenceLSTMOptions", projection or units
    return m.op(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", [x, *inputs], (*shape, outputs), table=table, activation="TANH",
        time_major=time_major, **limits,
    )  # fmt: skip


def lstm_inputs(
    m: Sketch, depth: int, units: int, outputs: int, cifg: bool = False, peephole: bool = False,
    projection: bool = False, norm: bool = False,
) -> list[int]:  # fmt: skip
    """What follows the input: weights, biases, the two states, and, where there are any, those of normalization."""
    gates = [not cifg, True, True, True]
    found = [m.random(units, depth) if there else ABSENT for there in gates]
    found += [m.random(units, outputs) if there else ABSENT for there in gates]
    found += [m.random(units) if peephole and there else ABSENT for there in gates[:3]]
    found += [m.random(units) if there else ABSENT for there in gates]
    found += [m.random(outputs, units), m.random(outputs)] if projection else [ABSENT, ABSENT]
    found += [m.tensor((2, outputs), is_variable=True), m.tensor((2, units), is_variable=True)]
    return found + ([m.random(units) if there else ABSENT for there in gates] if norm else [])


def variables() -> bytes:
    """A sum over all runs in a variable that is set to ones before the first."""
    m, before = Sketch(seed=5), ModelBuilder()
    names: dict[str, Any] = {"container": "", "shared_name": "sum"}
    handle = before.op("VAR_HANDLE", [], (), "resource", **names)
    before.op_of("ASSIGN_VARIABLE", [handle, before.constant([[1.0] * 5] * 2)], [])
    m.further.append(before)
    m.op_of("CALL_ONCE", [], [], init_subgraph_index=1)
    x = m.connected(m.input((2, 7)), 5)
    handle = m.op("VAR_HANDLE", [], (), "resource", **names)
    total = m.binary("ADD", m.op("READ_VARIABLE", [handle], (2, 5)), m.binary("MUL", x, m.constant(0.1)))
    m.op_of("ASSIGN_VARIABLE", [handle, total], [])
    m.output(m.unary("TANH", total))
    return m.build()


def volumes(m: Sketch) -> int:
    """A convolution of three dimensions between a layer and what follows; weights are DHWIO."""
    x = m.unary("RELU", m.input((1, 4, 5, 6, 3)))
    options: dict[str, Any] = {"padding": "SAME", "table": "Conv3DOptions", "stride_d": 1, "stride_h": 1, "stride_w": 1}
    dilations: dict[str, Any] = {"dilation_d_factor": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    y = m.op("CONV_3D", [x, m.random(2, 3, 3, 3, 2), m.random(2)], (1, 4, 5, 6, 2), **options, **dilations)
    return m.op("RESHAPE", [y, m.constant((1, 20, 6, 2), "int32")], (1, 20, 6, 2))


STATE_MODELS: Mapping[str, Callable[[], bytes]] = MappingProxyType(
    {
        "SVDF": lambda: _drawn(svdf),
        "LSTM": lambda: _drawn(lstm),
        "sequence": lambda: _drawn(sequence),
        "sequence with coupled gates": lambda: _drawn(lambda m: sequence(m, cifg=True, time_major=True)),
        "sequence with peepholes": lambda: _drawn(lambda m: sequence(m, peephole=True, cell_clip=0.3)),
        "sequence with a projection": lambda: _drawn(lambda m: sequence(m, projection=3, proj_clip=0.2)),
        "normalized sequence": lambda: _drawn(lambda m: sequence(m, norm=True, peephole=True, projection=3)),
        "variables": variables,
        "volumes": lambda: _drawn(volumes),
    }
)

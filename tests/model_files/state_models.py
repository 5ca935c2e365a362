"""Models with operators that keep states from run to run, and one with an operator that only the CPU has."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from tests.model_files.model_builder import ModelBuilder
from tests.model_files.sketch import Sketch

ABSENT = -1
Weights = Literal["float", "int8", "expanded"]
_SCALE = float(np.float32(1 / 127))


def drawn(draw: Callable[[Sketch], int]) -> bytes:
    m = Sketch(seed=5)
    m.output(m.unary("TANH", draw(m)))
    return m.build()


def svdf(
    m: Sketch, batch: int = 2, depth: int = 6, units: int = 4, rank: int = 2, steps: int = 5, bias: bool = True,
    weights: Weights = "float", activation: str = "RELU", **options: Any,
) -> int:  # fmt: skip
    """Units that look some steps back."""
    x = m.connected(m.input((batch, 7)), depth)
    state = m.tensor((batch, units * rank * steps), is_variable=True)
    factors = [_drawn(m, weights, units * rank, size) for size in (depth, steps)]
    inputs = [x, *factors, m.random(units) if bias else ABSENT, state]
    return m.op("SVDF", inputs, (batch, units), table="SVDFOptions", rank=rank, activation=activation, **options)


def svdf_of_bytes(
    m: Sketch, batch: int = 2, depth: int = 6, units: int = 4, rank: int = 2, steps: int = 5, bias: bool = True,
    activation: str = "RELU", zero_points: tuple[int, int] = (-3, -128), most: int = 9000,
) -> int:  # fmt: skip
    """SVDF of int8, with weights over time and a state of int16."""
    filters, (given, found) = units * rank, zero_points

    def drawn(dtype: str, size: int, shape: tuple[int, ...], scale: float) -> int:
        data = m.rng.integers(-size, size + 1, shape).astype(dtype).tobytes()
        return m.tensor(shape, dtype, data, scales=(scale,), zero_points=(0,))

    x = m.tensor((batch, depth), "int8", scales=(0.05,), zero_points=(given,))
    m.inputs.append(x)
    weights = [drawn("int8", 127, (filters, depth), 0.01), drawn("int16", most, (filters, steps), 1e-4)]
    biases = [drawn("int32", 1 << 24, (units,), 2e-8)] if bias else [ABSENT]
    state = m.tensor((batch, filters * steps), "int16", scales=(2e-4,), zero_points=(0,), is_variable=True)
    out = m.tensor((batch, units), "int8", scales=(0.03,), zero_points=(found,))
    return m.op_of("SVDF", [x, *weights, *biases, state], [out], table="SVDFOptions", rank=rank, activation=activation)[
        0
    ]


def _drawn(m: Sketch, weights: Weights, *shape: int) -> int:
    """Weights of floats, of bytes in a scale, or of the floats that these are."""
    if weights == "float":
        return m.random(*shape)
    values = m.rng.integers(-127, 128, shape).astype(np.int8)
    if weights == "expanded":
        return m.constant(values * np.float32(_SCALE))
    return m.tensor(shape, "int8", values.tobytes(), scales=(_SCALE,), zero_points=(0,))


def lstm(m: Sketch, batch: int = 2, units: int = 5, cifg: bool = False, **limits: Any) -> int:
    """Its full kernel, on one step."""
    x = m.connected(m.input((batch, 7)), 6)
    inputs = lstm_inputs(m, 6, units, units, cifg, batch=batch)
    return m.op("LSTM", [x, *inputs], (batch, units), **({"activation": "TANH"} | limits))


def basic_lstm(m: Sketch) -> int:
    """Its basic kernel, which keeps states that are variables."""
    x, state = m.connected(m.input((2, 7)), 6), [m.tensor((2, 5), is_variable=True) for _ in range(2)]
    inputs = [x, state[0], m.random(20, 11), m.random(20), state[1]]
    shapes = [(2, 5), (2, 5), (2, 11), (2, 20)]
    return m.split("LSTM", inputs, shapes, activation="TANH", kernel_type=1)[0]


def rnn(m: Sketch, activation: str = "TANH", weights: Weights = "float") -> int:
    """Of one step."""
    x, state = m.connected(m.input((2, 7)), 6), m.tensor((2, 5), is_variable=True)
    inputs = [x, _drawn(m, weights, 5, 6), _drawn(m, weights, 5, 5), m.random(5), state]
    return m.op("RNN", inputs, (2, 5), table="RNNOptions", activation=activation)


def rnn_over_time(m: Sketch, time_major: bool = False, batch: int = 2, steps: int = 4) -> int:
    """RNN, over time."""
    shape = (steps, batch) if time_major else (batch, steps)
    x, state = m.unary("RELU", m.input((*shape, 6))), m.tensor((batch, 5), is_variable=True)
    weights = [m.constant(m.rng.uniform(-0.4, 0.4, each)) for each in ((5, 6), (5, 5), (5,))]
    return m.op(
        "UNIDIRECTIONAL_SEQUENCE_RNN", [x, *weights, state], (*shape, 5), table="SequenceRNNOptions",
        activation="RELU", time_major=time_major,
    )  # fmt: skip


def sequence(
    m: Sketch, cifg: bool = False, peephole: bool = False, projection: int = 0, norm: bool = False,
    time_major: bool = False, batch: int = 2, units: int = 5, steps: int = 4, weights: Weights = "float",
    projection_bias: bool = True, **limits: Any,
) -> int:  # fmt: skip
    """UNIDIRECTIONAL_SEQUENCE_LSTM in each of its forms."""
    shape = (steps, batch) if time_major else (batch, steps)
    x = m.unary("RELU", m.input((*shape, 6)))
    inputs = lstm_inputs(
        m, 6, units, projection or units, cifg, peephole, bool(projection), norm, batch, weights, projection_bias
    )
    table, outputs = "UnidirectionalSequenceLSTMOptions", projection or units
    return m.op(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", [x, *inputs], (*shape, outputs), table=table, time_major=time_major,
        **({"activation": "TANH"} | limits),
    )  # fmt: skip


def lstm_inputs(
    m: Sketch, depth: int, units: int, outputs: int, cifg: bool = False, peephole: bool = False,
    projection: bool = False, norm: bool = False, batch: int = 2, weights: Weights = "float",
    projection_bias: bool = True,
) -> list[int]:  # fmt: skip
    """What follows the input: weights, biases, the two states, and, where there are any, those of normalization."""
    gates = [not cifg, True, True, True]
    found = [_drawn(m, weights, units, depth) if there else ABSENT for there in gates]
    found += [_drawn(m, weights, units, outputs) if there else ABSENT for there in gates]
    found += [_drawn(m, weights, units) if peephole and there else ABSENT for there in gates[:3]]
    found += [m.random(units) if there else ABSENT for there in gates]
    found += [_drawn(m, weights, outputs, units) if projection else ABSENT]
    found += [m.random(outputs) if projection and projection_bias else ABSENT]
    found += [m.tensor((batch, size), is_variable=True) for size in (outputs, units)]
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
        "SVDF": lambda: drawn(svdf),
        "LSTM": lambda: drawn(lstm),
        "basic LSTM": lambda: drawn(basic_lstm),
        "RNN": lambda: drawn(rnn),
        "RNN over time": lambda: drawn(rnn_over_time),
        "sequence": lambda: drawn(sequence),
        "sequence with coupled gates": lambda: drawn(lambda m: sequence(m, cifg=True, time_major=True)),
        "sequence with peepholes": lambda: drawn(lambda m: sequence(m, peephole=True, cell_clip=0.3)),
        "sequence with a projection": lambda: drawn(lambda m: sequence(m, projection=3, proj_clip=0.2)),
        "normalized sequence": lambda: drawn(lambda m: sequence(m, norm=True, peephole=True, projection=3)),
        "variables": variables,
        "volumes": lambda: drawn(volumes),
    }
)

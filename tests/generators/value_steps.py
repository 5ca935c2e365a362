"""Steps that add any op to a random graph, of tensors of any type and rank: one step for each op, a line in STEPS.

Ops that compute value by value come from their records: those with one operand and those with two need no line.
A step gives the number of the tensor that it has made, or None where nothing in the graph fits it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import tflite

from tests.generators.map_steps import RESIZES, convolved, depthwise_step, window
from tests.generators.move_steps import MOVE_STEPS
from tests.generators.random_graphs import (
    FUSED,
    NOT_CONTINUOUS,
    MapStep,
    RandomGraph,
    Step,
)
from tests.model_files.moves import ints
from texelflow.gpu_delegate.ops.registry import OPS, SUPPORTED_OPS
from texelflow.gpu_delegate.ops.variables import VARIABLE_OPS
from texelflow.gpu_delegate.passes.steps_recurrent import RECURRENT_FORMS

MOST_OPS = 30
MOST_INTEGER = 1 << 20
LARGEST = 20.0
MOST_FACTORS = 1000.0  # of a product whose size is estimated: no float holds 1.5 to the power of 2000
EXACT_UNARY = ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "ABS", "NEG", "SIGN", "CEIL", "FLOOR", "ROUND")
OF_POSITIVE = ("LOG", "SQRT", "RSQRT")
LIMITS: Mapping[str, float] = MappingProxyType({"EXP": 2.0, "SQUARE": 4.0, "LOGISTIC": 1e9, "TANH": 1e9})
OUTSIDE = frozenset(
    {"DENSIFY", "DEQUANTIZE", "QUANTIZE", "Convolution2DTransposeBias", "SHAPE", *VARIABLE_OPS, *RECURRENT_FORMS}
)  # of what grows
SPECTRAL = frozenset({"RFFT2D", "COMPLEX_ABS", "REAL", "IMAG"})  # of floats alone
DISPUTED = frozenset({"LOCAL_RESPONSE_NORMALIZATION", "ELU"})  # whose reference kernel is wrong, or missing
NOT_FUSED = frozenset({"MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "POW", "ATAN2", "PRELU", "FLOOR_DIV", "FLOOR_MOD"})


def grow(graph: RandomGraph) -> None:
    """By two to thirty ops of all kinds, or of few, so that ops meet themselves again, too."""
    graph.batch = graph.pick((1, 1, 1, 2, 3))
    left_out = OUTSIDE | (NOT_CONTINUOUS | DISPUTED | SPECTRAL if graph.profile.continuous else frozenset())
    kinds = [
        (name, STEPS.get(name) or _by_record(name))
        for name in SUPPORTED_OPS
        if name not in left_out and hasattr(tflite.BuiltinOperator, name)
    ]
    few = [graph.pick(kinds) for _ in range(graph.pick((3, 6, 12)))]
    kinds = few if graph.chance(0.5) else kinds
    count = 2 + int(graph.rng.integers(0, graph.pick((4, 12, MOST_OPS - 5))))
    for _ in range(graph.pick((1, 1, 2, 3))):
        graph.fresh("float32", graph.pick((1, 2, 3, 4, 4, 4, 4)))
    tries, further = 0, graph.profile.further
    if further:
        graph.keep(graph.pick(further)(graph) or 0)
    while len(graph.ops) < count and tries < 4 * count:
        tries += 1
        name, step = ("", graph.pick(further)) if further and graph.chance(0.3) else graph.pick(kinds)
        found = step(graph) if step else graph.from_table(name)
        if found is not None:
            graph.keep(found)
    if not graph.ops:
        graph.keep(graph.unary("TANH", graph.value()))
    _name_outputs(graph)


def _name_outputs(graph: RandomGraph) -> None:
    """What nothing reads, and sometimes others."""
    read = {tensor for op in graph.ops for tensor in op.inputs}
    written = [tensor for op in graph.ops for tensor in op.outputs if tensor in graph.made]
    ends = [tensor for tensor in written if tensor not in read]
    others = [graph.pick(written) for _ in range(graph.pick((0, 0, 1, 2)))]
    graph.output(
        *(tensor for tensor in dict.fromkeys([*(ends or written[-1:]), *others]) if tensor not in graph.outputs)
    )


def _by_record(name: str) -> Step | None:
    """The step of an op that computes value by value from one tensor or two."""
    file, role = OPS[name].file, OPS[name].role
    if file is None or role != "elementwise":
        return None
    if "bool" in file.out_dtypes and "float32" in file.dtypes and file.count == (2, 2):
        return lambda graph: _compared(graph, name)
    if "float32" not in file.dtypes or file.first_dtypes:
        return None
    if file.count == (1, 1):
        return lambda graph: _unary(graph, name)
    return (lambda graph: _binary(graph, name)) if file.count == (2, 2) else None


# Value by value -------------------------------------------------------------------------------------------------------


def _unary(graph: RandomGraph, name: str) -> int:
    record = OPS[name].file
    whole = record is not None and "int32" in record.dtypes and graph.chance(0.3)
    x = graph.value("int32") if whole else graph.value(exact=name in NOT_CONTINUOUS, most=LIMITS.get(name, LARGEST))
    if name in OF_POSITIVE:
        x = graph.positive(x)
    given: dict[str, dict[str, Any]] = {
        "LEAKY_RELU": {"alpha": 0.3},
        "GELU": {"approximate": graph.chance(0.5)},
        "FAKE_QUANT": {"table": "FakeQuantOptions", "min": -1.5, "max": 2.0, "num_bits": graph.pick((4, 8))},
    }
    most = {"EXP": 8.0, "SQUARE": graph.about(x) ** 2}.get(name, max(graph.about(x), 2.0))
    out = graph.unary(name, x, dtype=graph.dtype(x), **given.get(name, {}))
    return graph.note(out, most, x in graph.exact and name in EXACT_UNARY)


def _binary(graph: RandomGraph, name: str) -> int:
    file = OPS[name].file
    if file is not None and "int32" in file.dtypes and (name in ("FLOOR_DIV", "FLOOR_MOD") or graph.chance(0.3)):
        return _whole_binary(graph, name)
    exact = name in NOT_CONTINUOUS
    x = graph.value(exact=exact, most=LARGEST)
    y = graph.partner(x, exact)
    if name in ("DIV", "POW"):
        x, y = (graph.positive(x) if name == "POW" else x), graph.positive(y)
    if name == "ATAN2":  # which neither broadcasts nor is continuous where x is negative
        y = graph.positive(x)
    if name == "PRELU":
        y = graph.random(*graph.shape(x)[-1:]) if graph.shape(x) else graph.constant(0.3)
    options: dict[str, Any] = {} if name in NOT_FUSED else {"activation": graph.pick(FUSED)}
    x, y = graph.bounded(x, LARGEST), graph.bounded(y, LARGEST)
    pair = (y, x) if graph.chance(0.3) and name in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM") else (x, y)
    out, (a, b) = graph.binary(name, *pair, **options), (graph.about(x), graph.about(y))
    most = {"MUL": a * b, "SQUARED_DIFFERENCE": (a + b) ** 2, "DIV": 2 * a, "POW": 2.0}.get(name, a + b)
    return graph.note(out, most, name in ("MAXIMUM", "MINIMUM") and {x, y} <= graph.exact)


def _whole_binary(graph: RandomGraph, name: str) -> int:
    """Of integers that stay small; divisors are constants or 1 at least."""
    x = graph.value("int32", most=1000.0)
    y = graph.bounded(graph.partner(x), 1000.0)
    if name in ("DIV", "FLOOR_DIV", "FLOOR_MOD"):
        y = graph.binary("MAXIMUM", y, ints(graph, 1), dtype="int32")
        graph.note(y, 1000.0)
    options: dict[str, Any] = {"dtype": "int32"}
    out, (a, b) = graph.binary(name, x, y, **options), (graph.about(x), graph.about(y))
    most = {"MUL": a * b, "SQUARED_DIFFERENCE": (a + b) ** 2}.get(name, a + b)
    return graph.bounded(graph.note(out, most), MOST_INTEGER)


def _compared(graph: RandomGraph, name: str) -> int:
    x = graph.value("int32") if graph.chance(0.4) else graph.value(exact=True)
    return graph.note(graph.binary(name, x, graph.partner(x, exact=True), dtype="bool"), 1.0)


def _logic(name: str) -> Step:
    def step(graph: RandomGraph) -> int:
        x = graph.value("bool")
        if name == "LOGICAL_NOT":
            return graph.note(graph.unary(name, x, dtype="bool"), 1.0)
        return graph.note(graph.binary(name, x, graph.partner(x), dtype="bool"), 1.0)

    return step


def _chosen(name: str) -> Step:
    def step(graph: RandomGraph) -> int | None:
        condition = graph.value("bool")
        x = graph.value(graph.pick(("float32", "int32")))
        if name == "SELECT" or np.broadcast_shapes(graph.shape(x)[:0], graph.shape(condition)) != graph.shape(x):
            same = [y for y in graph.made if graph.dtype(y) == "bool" and graph.shape(y) == graph.shape(x)]
            condition = graph.pick(same) if same else graph.fresh("bool", shape=graph.shape(x))
        others = [y for y in graph.made if (graph.shape(y), graph.dtype(y)) == (graph.shape(x), graph.dtype(x))]
        y = graph.pick(others)
        out = graph.op(name, [condition, x, y], graph.shape(x), graph.dtype(x))
        return graph.note(out, max(graph.about(x), graph.about(y)), {x, y} <= graph.exact)

    return step


def _cast(graph: RandomGraph) -> int:
    x = graph.value(graph.pick(("float32", "int32", "bool")), exact=True)
    dtype = graph.pick([dtype for dtype in ("float32", "int32", "bool") if dtype != graph.dtype(x)])
    return graph.note(graph.unary("CAST", x, dtype=dtype), graph.about(x), exact=True)


def _added(graph: RandomGraph) -> int:
    x = graph.value(most=LARGEST)
    same = [y for y in graph.made if graph.shape(y) == graph.shape(x) and graph.dtype(y) == "float32"]
    several = [graph.bounded(graph.pick(same or [x]), LARGEST) for _ in range(graph.pick((1, 2, 4)))]
    return graph.note(graph.op("ADD_N", [x, *several], graph.shape(x)), LARGEST * 5)


# Reductions -----------------------------------------------------------------------------------------------------------


def _reduced(name: str) -> Step:
    def step(graph: RandomGraph) -> int:
        truths = name in ("REDUCE_ANY", "REDUCE_ALL")
        x = graph.value("bool", (1, 2, 3, 4)) if truths else graph.value(ranks=(1, 2, 3, 4), most=LARGEST)
        rank = len(graph.shape(x))
        axes = sorted(graph.rng.permutation(rank)[: graph.pick((1, 1, 2, rank))].tolist())
        if name == "REDUCE_PROD":
            axes, x = axes[:1], graph.positive(x)
        count = float(np.prod([graph.shape(x)[axis] for axis in axes]))
        product = 1.5 ** min(count, MOST_FACTORS)
        most = {"SUM": graph.about(x) * count, "REDUCE_PROD": product}.get(name, graph.about(x))
        out = graph.reduce(name, x, axes, graph.chance(0.6), graph.dtype(x))
        return graph.note(out, most, name in ("REDUCE_MAX", "REDUCE_MIN") and x in graph.exact)

    return step


def _extremum(name: str) -> Step:
    def step(graph: RandomGraph) -> int:
        x = graph.value(ranks=(1, 2, 3, 4), exact=True)
        out = graph.extremum(name, x, int(graph.rng.integers(0, len(graph.shape(x)))))
        return graph.note(out, 20.0)

    return step


def _top(graph: RandomGraph) -> int:
    x = graph.value(ranks=(1, 2, 3, 4), exact=True)
    values, places = graph.top(x, int(graph.rng.integers(1, graph.shape(x)[-1] + 1)))
    graph.made.append(graph.note(places, 20.0))
    return graph.like(values, x)


def _running(graph: RandomGraph) -> int:
    x = graph.value(ranks=(1, 2, 3, 4), most=LARGEST)
    axis = int(graph.rng.integers(0, len(graph.shape(x))))
    out = graph.running_sum(x, axis, graph.chance(0.5), graph.chance(0.5))
    return graph.note(out, graph.about(x) * graph.shape(x)[axis])


def _normalized(name: str, **options: Any) -> Step:
    def step(graph: RandomGraph) -> int:
        ranks = (4,) if options else (1, 2, 3, 4)
        x = graph.value(ranks=ranks, exact=name in NOT_CONTINUOUS, most=LARGEST)
        given = {"beta": graph.pick((1.0, 0.5))} if name == "SOFTMAX" else options
        return graph.note(graph.unary(name, x, **given), 2 * graph.about(x) + 5 if name == "LOG_SOFTMAX" else 2.0)

    return step


# Windows and contractions ---------------------------------------------------------------------------------------------


def _windowed(step: MapStep) -> Step:
    """A layer of map_steps.py."""

    def made(graph: RandomGraph) -> int:
        x = graph.value(ranks=(4,), most=LARGEST)
        return graph.note(step(graph, x), 2 * graph.about(x) + 1)

    return made


def _deconvolved(graph: RandomGraph) -> int:
    x = graph.value(ranks=(4,), most=LARGEST)
    kernel, stride = graph.pick((((2, 2), (2, 2)), ((3, 3), (2, 2)), ((3, 3), (1, 1)), ((2, 3), (2, 1))))
    out = graph.transpose(x, graph.pick(graph.profile.channels[:6]), kernel, stride, graph.pick(("SAME", "VALID")))
    return graph.note(out, 3 * graph.about(x) + 1)


def _connected(graph: RandomGraph) -> int:
    x, outputs = graph.value(ranks=(2, 3, 4), most=LARGEST), graph.pick(graph.profile.channels)
    depth = graph.shape(x)[-1]
    inputs = [x, graph.random(outputs, depth), graph.random(outputs)]
    shape = (*graph.shape(x)[:-1], outputs)
    out = graph.op("FULLY_CONNECTED", inputs, shape, keep_num_dims=True, activation=graph.pick(FUSED))
    return graph.note(out, 2 * graph.about(x) + 1)


def _multiplied(graph: RandomGraph) -> int:
    """By a constant matrix, or by itself."""
    x = graph.value(ranks=(2, 3, 4), most=4.0)
    *outer, rows, depth = graph.shape(x)
    if graph.chance(0.4):
        out = graph.op("BATCH_MATMUL", [x, x], (*outer, rows, rows), table="BatchMatMulOptions", adj_y=True)
        return graph.note(out, depth * graph.about(x) ** 2)
    columns = graph.pick(graph.profile.channels)
    by = graph.constant(graph.rng.uniform(-1, 1, (*[1] * len(outer), depth, columns)) / depth**0.5)
    out = graph.op("BATCH_MATMUL", [x, by], (*outer, rows, columns), table="BatchMatMulOptions")
    return graph.note(out, graph.about(x) * depth**0.5)


def _pooled(name: str) -> Step:
    def step(graph: RandomGraph) -> int:
        x = graph.value(ranks=(4,), most=LARGEST)
        out = graph.pool(name, x, table="Pool2DOptions", **window(graph, x, dilated=False))
        return graph.note(out, graph.about(x), name == "MAX_POOL_2D" and x in graph.exact)

    return step


def _resized(name: str) -> Step:
    def step(graph: RandomGraph) -> int:
        x = graph.value(ranks=(4,), most=LARGEST)
        height, width = graph.shape(x)[1:3]
        size = (
            (2 * height, 2 * width)
            if graph.chance(0.4)
            else (graph.pick(graph.profile.sides), graph.pick(graph.profile.sides))
        )
        out = graph.resize(x, size, name, **graph.pick(RESIZES))
        return graph.note(out, graph.about(x), name != "RESIZE_BILINEAR" and x in graph.exact)

    return step


def _spectral(name: str) -> Step:
    """The transform of a tensor's last two dimensions, cut or filled with zeros, and what is taken of it."""

    def step(graph: RandomGraph) -> int:
        x = graph.bounded(graph.value(ranks=(2, 3, 4)), 2.0)
        rows, columns = graph.pick((1, 2, 4, 8)), graph.pick((2, 4, 8, 16))
        shape = (*graph.shape(x)[:-2], rows, columns // 2 + 1)
        spectrum = graph.op("RFFT2D", [x, ints(graph, (rows, columns))], shape, "complex64")
        part = graph.pick(("COMPLEX_ABS", "REAL", "IMAG")) if name == "RFFT2D" else name
        return graph.note(graph.op(part, [spectrum], shape), 2.0 * rows * columns)

    return step


STEPS: Mapping[str, Step] = MappingProxyType(
    {
        **{name: _logic(name) for name in ("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT")},
        **{name: _chosen(name) for name in ("SELECT", "SELECT_V2")},
        "CAST": _cast,
        "ADD_N": _added,
        **{name: _reduced(name) for name in ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN")},
        **{name: _reduced(name) for name in ("REDUCE_ANY", "REDUCE_ALL")},
        **{name: _extremum(name) for name in ("ARG_MAX", "ARG_MIN")},
        "TOPK_V2": _top,
        "CUMSUM": _running,
        **{name: _normalized(name) for name in ("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION")},
        "LOCAL_RESPONSE_NORMALIZATION": _normalized(
            "LOCAL_RESPONSE_NORMALIZATION", radius=2, bias=1.0, alpha=0.5, beta=0.5
        ),
        "CONV_2D": _windowed(convolved),
        "DEPTHWISE_CONV_2D": _windowed(depthwise_step),
        "TRANSPOSE_CONV": _deconvolved,
        **{name: _spectral(name) for name in SPECTRAL},
        "FULLY_CONNECTED": _connected,
        "BATCH_MATMUL": _multiplied,
        **{name: _pooled(name) for name in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")},
        **{name: _resized(name) for name in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")},
        **MOVE_STEPS,
    }
)

"""Random 8-bit models with changed quantization, options or wiring.

A mutant is cut from a quantized twin of an op or of a random graph, or from a file: one to eight operators, with their
constants. Then one to three of its scales, zero points, dimensions of scales, options, types, ops, wires or constants
become others: usual ones, those at a tie, those that no converter writes, and those that make no sense.
"""

import copy
import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from random import Random
from typing import Any

import flatbuffers
import numpy as np

from tests.generators.profiles import random_graph
from tests.quantized.quantizer import Scheme, quantized_twin
from tests.quantized.single_ops import HIGH, LOW, SINGLE_OPS, model_of
from texelflow.gpu_delegate.base.errors import TexelflowError
from texelflow.gpu_delegate.reading.reader import read_model

Model = Any  # a ModelT of TensorFlow Lite's schema, as ai-edge-litert has it in Python
Mutation = Callable[[Model, Random], None]

SHAPES = ((1, 7, 9, 5), (2, 5, 8, 1), (1, 6, 7, 3), (1, 4, 4, 8))
OPERATORS = (1, 1, 1, 2, 3, 4, 6, 8)
MOST_BYTES, MOST_VALUES = 300_000, 60_000  # of a file, and of a tensor
GRAPHS = 400  # random graphs that mutants are cut from
DTYPES = ("int8", "uint8")
ZERO_POINTS = (0, 1, -1, 127, 128, -128, 255, 256, 3, -77, 200, 1 << 31)
SCALES = (0.0, -0.0, 1e-45, 1e-38, 1e-10, 1e-3, 0.5, 1.0, 2.0, 256.0, 1e6, 1e30, 3e38, math.inf, math.nan, -0.01)
NUMBERS = (0, 1, 2, 3, 4, -1, 5, 7)
FACTORS = (0.0, -0.5, 0.1, 0.25, 1.0, 1.5, 100.0, 1e-30, 1e30)
INTEGERS = (0, 1, -1, 3, 255, 1 << 15, -(1 << 20), (1 << 31) - 1, -(1 << 31))
ENDS = (1.0, 6.0)  # of fused activations
ACTIVATIONS = (0, 1, 2, 3)  # NONE, RELU, RELU_N1_TO_1, RELU6
FAMILIES = (
    ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"),
    ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "LOGISTIC", "TANH", "HARD_SWISH", "ABS", "EXP", "QUANTIZE", "NEG"),
    ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"),
    ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"),
    ("AVERAGE_POOL_2D", "MAX_POOL_2D"),
    ("RSQRT", "LOG", "SQRT", "EXP"),
)


def schema() -> Any:
    """TensorFlow Lite's schema with a class for each table."""
    return importlib.import_module("ai_edge_litert.schema_py_generated")


def unpacked(data: bytes) -> Model:
    """The tables of a file as objects."""
    found = schema()
    return found.ModelT.InitFromObj(found.Model.GetRootAs(data, 0))


def packed(model: Model) -> bytes:
    """The file of such objects. Raises what NumPy and struct raise for numbers that no field holds."""
    builder = flatbuffers.Builder(1 << 14)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


@dataclass(frozen=True)
class Mutant:
    """A model, of what it was made, and what was changed."""

    data: bytes
    base: str
    changes: tuple[str, ...]


def mutant(seed: int, files: Sequence[Path] = ()) -> Mutant:
    """The same for a seed whenever it is asked; another base where one cannot be cut."""
    random = Random(f"quantized {seed}")
    while True:
        base, name = _base(random, files)
        if base is None:
            continue
        changes = _changed(base, random)
        try:
            return Mutant(packed(base), name, changes)
        except (ValueError, TypeError, OverflowError, AttributeError):  # a field that cannot be written
            continue


def with_all_outputs(data: bytes) -> bytes:
    """The same model, of which each tensor that an operator writes is an output."""
    model = unpacked(data)
    graph = model.subgraphs[0]
    written = [int(i) for op in graph.operators for i in op.outputs if i >= 0]
    graph.outputs = list(dict.fromkeys([*map(int, graph.outputs), *written]))
    model.signatureDefs = []
    return packed(model)


# Bases ----------------------------------------------------------------------------------------------------------------


def _base(random: Random, files: Sequence[Path]) -> tuple[Model | None, str]:
    kind = random.random()
    if files and kind < 0.4:
        path = random.choice(files)
        return _window(_unpacked_file(path), random), path.name
    if kind < 0.75:
        op, dtype, number = random.choice(sorted(SINGLE_OPS)), random.choice(DTYPES), random.randrange(len(SHAPES))
        return unpacked(single_op(op, dtype, number, random.random() < 0.7)), f"{op} {dtype}"
    seed, dtype = random.randrange(GRAPHS), random.choice(DTYPES)
    data = _graph(seed, dtype)
    return _window(unpacked(data), random) if data else None, f"graph {seed} {dtype}"


@lru_cache(maxsize=8)
def _file(path: Path) -> bytes:
    return path.read_bytes()


def _unpacked_file(path: Path) -> Model:
    return unpacked(_file(path))


@cache
def single_op(op: str, dtype: str, number: int, per_channel: bool) -> bytes:
    """The quantized twin of an op of SINGLE_OPS, on the shape of this number."""
    shape = SHAPES[number]
    rng = np.random.default_rng(number)
    samples = [[rng.uniform(LOW, HIGH, shape).astype(np.float32) for _ in range(2)]]
    scheme = Scheme(dtype, per_channel, apart=per_channel and dtype == "uint8")
    return quantized_twin(model_of([op], shape, number), samples, scheme)


@lru_cache(maxsize=64)
def _graph(seed: int, dtype: str) -> bytes:
    """b"" for a graph that TensorFlow Lite does not run."""
    sketch = random_graph(seed, "quantized")
    try:
        return quantized_twin(sketch, [sketch.values(0)], Scheme(dtype, seed % 3 > 0))
    except (ValueError, RuntimeError):
        return b""


def is_cut_from(path: Path) -> bool:
    """Whether the reader takes a file and it has 8-bit integers."""
    try:
        graph = read_model(path.read_bytes())
    except TexelflowError:
        return False
    return any(t.quantization and t.dtype in DTYPES and not t.is_constant for t in graph.tensors.values())


def _window(model: Model, random: Random) -> Model | None:
    """Operators in a row as a model of their own, or None where that is too large."""
    graph = model.subgraphs[0]
    count = random.choice(OPERATORS)
    first = random.randrange(max(1, len(graph.operators) - count + 1))
    operators = graph.operators[first : first + count]
    used = list(dict.fromkeys(int(i) for op in operators for i in (*op.inputs, *op.outputs) if i >= 0))
    number = {tensor: place for place, tensor in enumerate(used)}
    written = {int(i) for op in operators for i in op.outputs}
    read = {int(i) for op in operators for i in op.inputs}
    later = {int(i) for op in graph.operators[first + count :] for i in op.inputs} | {int(i) for i in graph.outputs}
    tensors, buffers = [], [schema().BufferT()]
    for tensor in used:
        made = copy.copy(graph.tensors[tensor])
        data = model.buffers[made.buffer].data
        made.buffer = 0 if data is None or not len(data) else len(buffers)
        if made.buffer:
            buffers.append(model.buffers[graph.tensors[tensor].buffer])
        elif _values(made) > MOST_VALUES:
            return None
        tensors.append(made)
    if sum(0 if buffer.data is None else len(buffer.data) for buffer in buffers) > MOST_BYTES:
        return None
    for op in operators:
        op.inputs, op.outputs = ([number.get(int(i), -1) for i in side] for side in (op.inputs, op.outputs))
    constant = {number[tensor] for tensor in used if tensors[number[tensor]].buffer}
    outputs = [number[i] for i in used if i in written and (i in later or i not in read)]
    part = schema().SubGraphT()
    part.tensors, part.operators, part.outputs = tensors, operators, outputs
    part.inputs = [number[i] for i in used if i not in written and number[i] not in constant]
    model.subgraphs, model.buffers, model.metadata, model.signatureDefs = [part], buffers, [], []
    return model if outputs else None


def _values(tensor: Any) -> int:
    return int(np.prod([max(int(size), 0) for size in tensor.shape], dtype=np.int64)) if len(tensor.shape) else 1


# Mutations ------------------------------------------------------------------------------------------------------------


def _changed(model: Model, random: Random) -> tuple[str, ...]:
    changes = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        (mutation,) = random.choices([each for each, _ in MUTATIONS], [weight for _, weight in MUTATIONS])
        mutation(model, random)
        changes.append(mutation.__name__.strip("_"))
    return tuple(changes)


def _quantized(model: Model, random: Random, least: int = 1) -> Any | None:
    """What the integers of some tensor mean, of those that say it."""
    found = [t.quantization for t in model.subgraphs[0].tensors if t.quantization is not None]
    found = [each for each in found if each.scale is not None and len(each.scale) >= least]
    return random.choice(found) if found else None


def _set_scale(model: Model, random: Random, choose: Callable[[float], float]) -> None:
    quantization = _quantized(model, random)
    if quantization is None:
        return
    scales = np.array(quantization.scale, np.float32)
    place = random.randrange(len(scales))
    with np.errstate(over="ignore"):
        scales[slice(None) if random.random() < 0.5 else place] = np.float32(choose(float(scales[place])))
    quantization.scale = scales


def _other_scale(model: Model, random: Random) -> None:
    """Up to a thousand times as large or small."""
    _set_scale(model, random, lambda scale: scale * 2.0 ** random.uniform(-10, 10))


def _near_scale(model: Model, random: Random) -> None:
    """As networks have them."""
    _set_scale(model, random, lambda scale: scale * 2.0 ** random.uniform(-1.5, 1.5))


def _scale_at_a_tie(model: Model, random: Random) -> None:
    """The end of an activation lies between two steps."""
    _set_scale(model, random, lambda _: random.choice(ENDS) / (random.randrange(256) + 0.5))


def _power_of_two(model: Model, random: Random) -> None:
    _set_scale(model, random, lambda _: 2.0 ** random.randrange(-12, 4))


def _strange_scale(model: Model, random: Random) -> None:
    value = random.choice(SCALES)
    _set_scale(model, random, lambda _: value)


def _set_zero_point(model: Model, random: Random, value: int) -> None:
    quantization = _quantized(model, random)
    if quantization is None or quantization.zeroPoint is None or not len(quantization.zeroPoint):
        return
    found = np.array(quantization.zeroPoint, np.int64)
    found[random.randrange(len(found))] = value
    quantization.zeroPoint = found


def _other_zero_point(model: Model, random: Random) -> None:
    _set_zero_point(model, random, random.randrange(-128, 128))


def _strange_zero_point(model: Model, random: Random) -> None:
    _set_zero_point(model, random, random.choice(ZERO_POINTS))


def _same_quantization(model: Model, random: Random) -> None:
    """One tensor's integers mean what another's do."""
    one, other = _quantized(model, random), _quantized(model, random)
    if one is not None and other is not None:
        one.scale, one.zeroPoint = np.array(other.scale), np.array(other.zeroPoint)


def _other_dimension(model: Model, random: Random) -> None:
    quantization = _quantized(model, random, least=2)
    if quantization is not None:
        quantization.quantizedDimension = random.choice((0, 1, 2, 3, 4, -1))


def _more_scales(model: Model, random: Random) -> None:
    quantization = _quantized(model, random)
    if quantization is not None:
        count = random.choice((0, 1, 2, len(quantization.scale) - 1, len(quantization.scale) + 1))
        quantization.scale = np.resize(np.array(quantization.scale, np.float32), count)
        if random.random() < 0.7 and quantization.zeroPoint is not None:
            quantization.zeroPoint = np.resize(np.array(quantization.zeroPoint, np.int64), count)


def _scale_for_each_channel(model: Model, random: Random) -> None:
    """Of a constant of int8, along its first dimension or its last."""
    graph = model.subgraphs[0]
    found = [t for t in graph.tensors if t.buffer and t.type == schema().TensorType.INT8 and len(t.shape) > 1]
    found = [t for t in found if t.quantization is not None and t.quantization.scale is not None]
    found = [t for t in found if len(t.quantization.scale)]
    if not found:
        return
    tensor = random.choice(found)
    dimension = random.choice((0, len(tensor.shape) - 1))
    count, scale = int(tensor.shape[dimension]), float(tensor.quantization.scale[0])
    scales = [scale * 2.0 ** random.uniform(-2, 2) for _ in range(count)]
    tensor.quantization.scale = np.array(scales, np.float32)
    tensor.quantization.zeroPoint = np.zeros(count, np.int64)
    tensor.quantization.quantizedDimension = dimension


def _other_option(model: Model, random: Random) -> None:
    options = random.choice(model.subgraphs[0].operators).builtinOptions
    fields = vars(options) if options else {}
    names = [key for key, value in fields.items() if isinstance(value, (int, float, np.generic))]
    if not names:
        return
    name = random.choice(names)
    old, value = getattr(options, name), random.choice(NUMBERS)
    is_float = isinstance(old, (float, np.floating))
    setattr(options, name, bool(value & 1) if isinstance(old, bool) else random.choice(FACTORS) if is_float else value)


def _other_activation(model: Model, random: Random) -> None:
    found = [op.builtinOptions for op in model.subgraphs[0].operators]
    found = [options for options in found if hasattr(options, "fusedActivationFunction")]
    if found:
        random.choice(found).fusedActivationFunction = random.choice(ACTIVATIONS)


def _other_op(model: Model, random: Random) -> None:
    """Another op of its family, with the old one's options."""
    names = {value: key for key, value in vars(schema().BuiltinOperator).items() if isinstance(value, int)}
    operator = random.choice(model.subgraphs[0].operators)
    code = copy.copy(model.operatorCodes[operator.opcodeIndex])
    name = names.get(max(code.builtinCode, code.deprecatedBuiltinCode), "")
    family = next((each for each in FAMILIES if name in each), ())
    if family:
        code.builtinCode = getattr(schema().BuiltinOperator, random.choice(family))
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        model.operatorCodes = [*model.operatorCodes, code]
        operator.opcodeIndex = len(model.operatorCodes) - 1


def _other_wire(model: Model, random: Random) -> None:
    """An operator reads another tensor of that shape, or none."""
    graph = model.subgraphs[0]
    operator = random.choice(graph.operators)
    inputs = [int(i) for i in operator.inputs]
    if not inputs:
        return
    place = random.randrange(len(inputs))
    shape = list(graph.tensors[inputs[place]].shape) if inputs[place] >= 0 else []
    alike = [i for i, tensor in enumerate(graph.tensors) if list(tensor.shape) == shape]
    inputs[place] = random.choice((*alike, -1)) if alike else -1
    operator.inputs = inputs


def _other_type(model: Model, random: Random) -> None:
    kinds = schema().TensorType
    random.choice(model.subgraphs[0].tensors).type = random.choice((kinds.INT8, kinds.UINT8, kinds.INT16, kinds.INT32))


def _other_constant(model: Model, random: Random) -> None:
    """Values of a constant become extreme ones."""
    graph = model.subgraphs[0]
    places = [i for i, tensor in enumerate(graph.tensors) if tensor.buffer]
    if not places:
        return
    tensor = graph.tensors[random.choice(places)]
    data = np.array(model.buffers[tensor.buffer].data, np.uint8)
    if tensor.type == schema().TensorType.INT32 and data.size >= 4:
        whole = data.view(np.int32)
        whole[random.randrange(whole.size)] = random.choice(INTEGERS)
    elif tensor.type == schema().TensorType.BOOL:  # of which other bytes than 0 and 1 mean nothing
        data[random.randrange(data.size)] ^= 1
    elif data.size:
        for _ in range(random.choice((1, 4, 64))):
            data[random.randrange(data.size)] = random.choice((0, 127, 128, 129, 255, random.randrange(256)))
        if tensor.type == schema().TensorType.FLOAT32:
            data = _without_denormals(data)
    buffer = schema().BufferT()
    buffer.data = data
    model.buffers = [*model.buffers, buffer]
    tensor.buffer = len(model.buffers) - 1


def _without_denormals(data: np.ndarray[Any, np.dtype[np.uint8]]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of floats; what native code, as many GPUs, takes for 0 becomes the least number that it does not."""
    values = data.view(np.float32)
    least = np.finfo(np.float32).tiny
    return np.where((values != 0) & (np.abs(values) < least), least, values).astype(np.float32).view(np.uint8)


MUTATIONS: tuple[tuple[Mutation, int], ...] = (
    (_near_scale, 4),
    (_other_scale, 3),
    (_scale_at_a_tie, 3),
    (_power_of_two, 2),
    (_strange_scale, 1),
    (_other_zero_point, 4),
    (_strange_zero_point, 1),
    (_same_quantization, 2),
    (_other_dimension, 1),
    (_more_scales, 1),
    (_scale_for_each_channel, 2),
    (_other_option, 2),
    (_other_activation, 4),
    (_other_op, 3),
    (_other_wire, 1),
    (_other_type, 1),
    (_other_constant, 2),
)

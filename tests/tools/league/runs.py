"""Runs a model in TensorFlow Lite's interpreter, with one of the ways to compute it, on drawn inputs."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

import texelflow
from texelflow.gpu_delegate.cpu.interpreter_module import load_interpreter_module
from texelflow.gpu_delegate.cpu.rewriting import without_custom_landmarks
from texelflow.gpu_delegate.delegate.native_delegate import NativePartsDelegate
from texelflow.gpu_delegate.reading.reader import load_model
from texelflow.gpu_delegate.reading.writer import write_model

Way = Literal["reference", "xnnpack", "gl", "native"]
Arrays = list[npt.NDArray[Any]]
Range = tuple[float, float]
Sizes = Mapping[int, tuple[int, ...]]  # of inputs, by their tensors
NO_SIZES: Sizes = MappingProxyType({})
WAYS: tuple[Way, ...] = get_args(Way)
OURS: tuple[Way, ...] = ("gl", "native")
MOST_INDEX = 3  # whole numbers that are no bytes are drawn from 0 to this: they may be indices of a small table
MOST_THREADS = 4
_PART = 0.3  # of a range
_MOST_INPUT_BYTES = 1 << 28


class SkippedError(Exception):
    """A model that is not run, and why."""


@dataclass(frozen=True)
class Call:
    """A graph of a model that can be run: its inputs, and how it is run with them."""

    inputs: Sequence[Any]  # details, as get_input_details() has them
    run: Callable[[Sequence[npt.NDArray[Any]]], Arrays]
    invoke: Callable[[], object]  # once more with the inputs of the last run


def threads() -> int:
    """Of native code and XNNPACK."""
    return min(MOST_THREADS, len(os.sched_getaffinity(0)))


def started(way: Way, path: Path, sizes: Sizes = NO_SIZES) -> tuple[Any, Any]:
    """An interpreter with its tensors allocated, its inputs of these sizes, and the delegate, if the way has one.

    The reference kernels get a model with MediaPipe's ops as the engine writes it, by ops that TensorFlow Lite has.
    """
    module = load_interpreter_module(newer=True)
    given: dict[str, Any] = {"num_threads": threads()}
    delegate: Any = None
    if way == "reference":
        given = {"num_threads": 1, "experimental_op_resolver_type": module.OpResolverType.BUILTIN_REF}
    elif way in OURS:
        delegate = texelflow.GpuDelegate(quiet=True) if way == "gl" else NativePartsDelegate(threads(), every_part=True)
        given["experimental_delegates"] = [delegate]
    try:
        return _allocated(module.Interpreter(model_path=str(path), **given), sizes), delegate
    except RuntimeError as error:
        if way != "reference" or "unresolved custom op" not in str(error):
            raise
        written = write_model(without_custom_landmarks(load_model(path)))
        return _allocated(module.Interpreter(model_content=written, **given), sizes), delegate


def _allocated(interpreter: Any, sizes: Sizes) -> Any:
    for index, shape in sizes.items():
        interpreter.resize_tensor_input(index, shape)
    interpreter.allocate_tensors()
    return interpreter


def with_open_sizes(path: Path, size: int) -> Sizes:
    """Inputs whose files leave sizes open, each with `size` there; the first dimension of several is a batch of one."""
    found = load_interpreter_module(newer=True).Interpreter(model_path=str(path)).get_input_details()
    signatures = {detail["index"]: tuple(map(int, detail["shape_signature"])) for detail in found}
    return {
        index: tuple((1 if not axis and len(shape) > 1 else size) if n < 0 else n for axis, n in enumerate(shape))
        for index, shape in signatures.items()
        if min(shape, default=0) < 0
    }


def calls_of(interpreter: Any, signatures: Sequence[str]) -> list[Call]:
    """Those of several signatures, else the first graph. Raises SkippedError for inputs that nobody can draw here."""
    calls = [_signature_call(interpreter, key) for key in signatures] or [_plain_call(interpreter)]
    for detail in (detail for call in calls for detail in call.inputs):
        dtype = np.dtype(detail["dtype"])
        if dtype.kind not in "fiub":
            what = "texts" if dtype.kind in "OS" else dtype.name
            raise SkippedError(f"an input of {what}: not run")
        if dtype.itemsize * int(np.prod(detail["shape"], dtype=np.int64)) > _MOST_INPUT_BYTES:
            raise SkippedError(f"an input of more than {_MOST_INPUT_BYTES >> 20} MiB: not run")
    return calls


@dataclass(frozen=True)
class Draw:
    """How inputs are drawn, the same for each way: bytes of all values, floats within bounds, else small numbers.

    In every other run each input is from a part of its range: of all values at once many networks make one answer.
    """

    bounds: Range
    own: Mapping[int, Range]  # of some inputs, by their tensors

    def inputs(self, details: Sequence[Any], seed: int) -> Arrays:
        """Those of a run."""
        rng = np.random.default_rng(seed)
        part = _PART if seed % 2 else 1.0
        return [_drawn(rng, detail, self.own.get(detail["index"], self.bounds), part) for detail in details]

    def outputs(self, calls: Sequence[Call], count: int) -> Iterator[Arrays]:
        """The outputs of all calls, run by run."""
        for number in range(count):
            yield [array for call in calls for array in call.run(self.inputs(call.inputs, number))]


def _drawn(rng: np.random.Generator, detail: Any, bounds: Range, part: float) -> npt.NDArray[Any]:
    dtype, shape = np.dtype(detail["dtype"]), tuple(int(size) for size in detail["shape"])
    if dtype.kind == "f":
        return np.asarray(rng.uniform(*_part_of(rng, bounds, part), shape), dtype)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), dtype)
    is_quantized = detail["quantization"][0] != 0
    if dtype.itemsize == 1 or (dtype.itemsize == 2 and is_quantized):
        limits = np.iinfo(dtype)
        low, high = _part_of(rng, (limits.min, limits.max), part)
        return np.asarray(rng.integers(int(low), int(high), shape, endpoint=True), dtype)
    return np.asarray(rng.integers(0, MOST_INDEX, shape, endpoint=True), dtype)


def _part_of(rng: np.random.Generator, bounds: Range, part: float) -> Range:
    low, high = bounds
    first = rng.uniform(low, high - part * (high - low))
    return first, first + part * (high - low)


def _plain_call(interpreter: Any) -> Call:
    details = interpreter.get_input_details()

    def run(given: Sequence[npt.NDArray[Any]]) -> Arrays:
        for detail, values in zip(details, given, strict=True):
            interpreter.set_tensor(detail["index"], values)
        interpreter.invoke()
        return [np.asarray(interpreter.get_tensor(each["index"])) for each in interpreter.get_output_details()]

    return Call(details, run, interpreter.invoke)


def _signature_call(interpreter: Any, key: str) -> Call:
    runner = interpreter.get_signature_runner(key or None)
    details = dict(sorted(runner.get_input_details().items()))
    last: dict[str, npt.NDArray[Any]] = {}

    def run(given: Sequence[npt.NDArray[Any]]) -> Arrays:
        last.update(zip(details, given, strict=True))
        return [np.asarray(values) for _, values in sorted(runner(**last).items())]

    return Call([*details.values()], run, lambda: runner(**last))

"""Runs a model in TensorFlow Lite's interpreter, with one of the ways to compute it, on drawn inputs."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

import texelflow
from texelflow.gpu_delegate.cpu.interpreter_module import load_interpreter_module
from texelflow.gpu_delegate.delegate.native_delegate import NativePartsDelegate
from texelflow.gpu_delegate.reading.reader import load_model
from texelflow.gpu_delegate.reading.writer import write_model

Way = Literal["reference", "xnnpack", "gl", "native"]
Arrays = list[npt.NDArray[Any]]
Range = tuple[float, float]
WAYS: tuple[Way, ...] = get_args(Way)
OURS: tuple[Way, ...] = ("gl", "native")
MOST_INDEX = 3  # whole numbers that are no bytes are drawn from 0 to this: they may be indices of a small table
MOST_THREADS = 4
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


def started(way: Way, path: Path) -> tuple[Any, Any]:
    """An interpreter with its tensors allocated, and the delegate, if the way has one.

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
        interpreter = module.Interpreter(model_path=str(path), **given)
        interpreter.allocate_tensors()
    except RuntimeError as error:
        if way != "reference" or "unresolved custom op" not in str(error):
            raise
        interpreter = module.Interpreter(model_content=write_model(load_model(path)), **given)
        interpreter.allocate_tensors()
    return interpreter, delegate


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
    """How inputs are drawn: bytes of all values, floats within bounds, else small numbers; the same for each way."""

    bounds: Range
    own: Mapping[int, Range]  # of some inputs, by their tensors

    def inputs(self, details: Sequence[Any], seed: int) -> Arrays:
        """Those of a run."""
        rng = np.random.default_rng(seed)
        return [_drawn(rng, detail, self.own.get(detail["index"], self.bounds)) for detail in details]

    def outputs(self, calls: Sequence[Call], count: int) -> Iterator[Arrays]:
        """The outputs of all calls, run by run."""
        for number in range(count):
            yield [array for call in calls for array in call.run(self.inputs(call.inputs, number))]


def _drawn(rng: np.random.Generator, detail: Any, bounds: Range) -> npt.NDArray[Any]:
    dtype, shape = np.dtype(detail["dtype"]), tuple(int(size) for size in detail["shape"])
    if dtype.kind == "f":
        return np.asarray(rng.uniform(*bounds, shape), dtype)
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), dtype)
    is_quantized = detail["quantization"][0] != 0
    if dtype.itemsize == 1 or (dtype.itemsize == 2 and is_quantized):
        limits = np.iinfo(dtype)
        return np.asarray(rng.integers(limits.min, limits.max, shape, endpoint=True), dtype)
    return np.asarray(rng.integers(0, MOST_INDEX, shape, endpoint=True), dtype)


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

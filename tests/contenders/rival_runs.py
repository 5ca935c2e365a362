"""Rivals for whole models: what a .tflite becomes for each, and how it runs, from NumPy arrays to NumPy arrays.

A model lies in a folder: as it came, as our reader writes it (GIVEN, PLAIN), and as what its converters make of it.
Rivals are packages of this tool alone, never dependencies of the program. All compute in float32 what is not quantized.
"""

import importlib.util
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from ai_edge_litert import interpreter

from texelflow.gpu_delegate.base.errors import DeviceError

GIVEN, PLAIN = "given.tflite", "plain.tflite"
_ONNX, _MNN, _NCNN = "model.onnx", "model.mnn", "model.ncnn"
_TF2ONNX = Path("build/tf2onnx/bin/python")  # an environment of its own: it needs TensorFlow
_OPSET = 18
_CONVERSION_S = 300

Arrays = Sequence[npt.NDArray[Any]]
Run = Callable[[Arrays], Arrays]


@dataclass(frozen=True)
class Rival:
    """A runtime: `convert` writes into a model's folder what `start` reads there, for so many threads."""

    module: str  # by which Python knows whether it is installed
    convert: Callable[[Path], None]
    start: Callable[[Path, int], Run]


def _as_it_is(folder: Path) -> None:
    """For those that read .tflite files by themselves."""


def reference(folder: Path) -> Run:
    """TensorFlow Lite's reference kernels; where one is missing, its builtin ones without XNNPACK."""
    kinds = interpreter.OpResolverType
    try:
        return _tflite_run(folder, experimental_op_resolver_type=kinds.BUILTIN_REF)
    except (RuntimeError, ValueError):
        return _tflite_run(folder, experimental_op_resolver_type=kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES)


def _xnnpack(folder: Path, threads: int) -> Run:
    """TensorFlow Lite as it comes."""
    return _tflite_run(folder, num_threads=threads)


def _tflite_run(folder: Path, **options: Any) -> Run:
    """Of the file as it came, or, for want of its custom operators, as our reader writes it."""
    try:
        return _file_run(folder / GIVEN, **options)
    except (RuntimeError, ValueError):
        return _file_run(folder / PLAIN, **options)


def _file_run(path: Path, **options: Any) -> Run:
    made = interpreter.Interpreter(str(path), **options)
    made.allocate_tensors()
    inputs, outputs = made.get_input_details(), made.get_output_details()

    def run(arrays: Arrays) -> Arrays:
        for detail, array in zip(inputs, arrays, strict=True):
            made.set_tensor(detail["index"], array)
        made.invoke()
        return [made.get_tensor(detail["index"]) for detail in outputs]

    return run


def _openvino(folder: Path, threads: int) -> Run:
    import openvino  # each of these where it is asked for: loading one may write to the terminal, and takes long

    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1}
    request = openvino.Core().compile_model(str(folder / PLAIN), "CPU", settings).create_infer_request()
    return lambda arrays: [*request.infer(list(arrays)).values()]


def _to_onnx(folder: Path) -> None:
    """By tf2onnx, once for all that read ONNX. Raises DeviceError where it is not installed or fails."""
    if (folder / _ONNX).exists():
        return
    if not _TF2ONNX.exists():
        raise DeviceError(f"tf2onnx is not installed: {_TF2ONNX} is missing")
    words = ("-m", "tf2onnx.convert", "--tflite", folder / PLAIN, "--output", folder / _ONNX, "--opset", _OPSET)
    _converted([_TF2ONNX, *words], folder / _ONNX)


def _onnxruntime(folder: Path, threads: int) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(str(folder / _ONNX), options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]

    def run(arrays: Arrays) -> Arrays:
        found: Arrays = session.run(None, dict(zip(names, arrays, strict=True)))
        return found

    return run


def _to_mnn(folder: Path) -> None:
    """From the .tflite, or from ONNX where that fails; by what is behind `mnnconvert`, which reports its use."""
    try:
        _to_mnn_from("TFLITE", folder / PLAIN, folder)
    except DeviceError:
        _to_onnx(folder)
        _to_mnn_from("ONNX", folder / _ONNX, folder)


def _to_mnn_from(kind: str, model: Path, folder: Path) -> None:
    program = [sys.executable, "-c", "import sys, _tools; _tools.mnnconvert(sys.argv)"]  # it may crash
    words = ("-f", kind, "--modelFile", model, "--MNNModel", folder / _MNN, "--bizCode", "contenders")
    _converted([*program, *words], folder / _MNN)


def _mnn(folder: Path, threads: int) -> Run:
    import MNN

    kinds = {"float32": MNN.Halide_Type_Float, "int32": MNN.Halide_Type_Int, "uint8": MNN.Halide_Type_Uint8}
    described = interpreter.Interpreter(str(folder / PLAIN))
    inputs = [detail["name"] for detail in described.get_input_details()]
    outputs = [(detail["name"], detail["shape"], detail["dtype"]) for detail in described.get_output_details()]
    engine = MNN.Interpreter(str(folder / _MNN))
    session = engine.createSession({"backend": "CPU", "precision": "high", "numThread": threads})

    def tensor(values: npt.NDArray[Any], like: Any) -> Any:
        if (kind := kinds.get(values.dtype.name)) is None:
            raise DeviceError(f"its Python has no tensors of {values.dtype}")
        return MNN.Tensor(values.shape, kind, values, like.getDimensionType())

    def run(arrays: Arrays) -> Arrays:
        for name, array in zip(inputs, arrays, strict=True):
            given = engine.getSessionInput(session, name)
            given.copyFrom(tensor(array, given))
        engine.runSession(session)
        found = []
        for name, shape, dtype in outputs:
            made = engine.getSessionOutput(session, name)
            copy = tensor(np.zeros(shape, dtype), made)
            made.copyToHostTensor(copy)
            found.append(np.array(copy.getNumpyData(), dtype).reshape(shape))  # which is memory of the copy
        return found

    return run


def _to_ncnn(folder: Path) -> None:
    """By pnnx, from ONNX."""
    _to_onnx(folder)
    spec = importlib.util.find_spec("pnnx")
    if spec is None or not spec.submodule_search_locations:
        raise DeviceError("pnnx, which converts for it, is not installed")
    program = Path(spec.submodule_search_locations[0], "pnnx")  # the package around it wants PyTorch
    _converted([program, folder / _ONNX, "fp16=0"], folder / f"{_NCNN}.param")


def _ncnn(folder: Path, threads: int) -> Run:
    import ncnn

    net = ncnn.Net()
    net.opt.num_threads, net.opt.use_vulkan_compute = threads, False
    for name in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_packed", "bf16_storage"):
        setattr(net.opt, f"use_{name}", False)
    if net.load_param(str(folder / f"{_NCNN}.param")) or net.load_model(str(folder / f"{_NCNN}.bin")):
        raise DeviceError("the network is refused")
    outputs = len(net.output_names())

    def run(arrays: Arrays) -> Arrays:
        extractor = net.create_extractor()
        for number, array in enumerate(arrays):
            extractor.input(f"in{number}", ncnn.Mat(array, batch_index=0))
        return [extractor.extract(f"out{number}")[1].numpy(batch_index=0) for number in range(outputs)]

    return run


def _converted(command: Sequence[object], result: Path) -> None:
    """Runs a converter, and shows what it says. Raises DeviceError if there is no result."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=_CONVERSION_S)
    if not result.exists():
        print(done.stdout, done.stderr, file=sys.stderr)
        raise DeviceError(f"its converter {how_it_ended(done.returncode)}")


def how_it_ended(code: int) -> str:
    """Of a process, by what `subprocess` calls its exit code."""
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


RIVALS: Mapping[str, Rival] = MappingProxyType(
    {
        "XNNPACK": Rival("ai_edge_litert", _as_it_is, _xnnpack),
        "OpenVINO": Rival("openvino", _as_it_is, _openvino),
        "onnxruntime": Rival("onnxruntime", _to_onnx, _onnxruntime),
        "MNN": Rival("MNN", _to_mnn, _mnn),
        "ncnn": Rival("ncnn", _to_ncnn, _ncnn),
    }
)

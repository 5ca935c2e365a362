"""Builds a graph of convolutions in MNN, in fp32, with its own packing of four channels.

MNN's converter reads the file that TensorFlow Lite gets, and fuses activations. Its command `mnnconvert` is not used:
that one installs packages and reports its use to a server, which the compiled module behind it does not.
"""

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.packing import Float32Array
from texelflow.gpu_delegate.reading.writer import write_model

from .contenders import Contender, InputForm, silenced

# Whether it is installed is asked before; loading it tells what the CPU can do.
with contextlib.suppress(ImportError), silenced():
    import _tools as mnn_tools
    import MNN
    import MNN.expr

_OP = "Convolution"  # what MNN calls a convolution, and begins the name of a depthwise one with
_CONFIG = {"backend": "CPU", "precision": "high"}


class MnnContender:
    """A session of MNN's interpreter."""

    def __init__(self, model: Path, shapes: tuple[tuple[int, ...], tuple[int, ...]], threads: int) -> None:
        """`shapes` are BHWC, of the input and the output."""
        self._shape, self._shape_out = ((batch, depth, height, width) for batch, height, width, depth in shapes)
        self._interpreter = MNN.Interpreter(str(model))
        self._session = self._interpreter.createSession({**_CONFIG, "numThread": threads})

    def run(self) -> object:
        """See Contender."""
        return self._interpreter.runSession(self._session)

    def write(self, bhwc: Float32Array) -> None:
        """See Contender."""
        planes = np.ascontiguousarray(bhwc.transpose(0, 3, 1, 2))
        self._interpreter.getSessionInput(self._session).copyFrom(_planar(self._shape, planes))

    def read(self) -> Float32Array:
        """See Contender."""
        self.run()
        found = _planar(self._shape_out, np.zeros(self._shape_out, np.float32))
        self._interpreter.getSessionOutput(self._session).copyToHostTensor(found)
        return np.array(found.getNumpyData(), np.float32).reshape(self._shape_out).transpose(0, 2, 3, 1)


def open_mnn(graph: Graph, form: InputForm, threads: int) -> Contender:
    """The graph in MNN. Raises DeviceError where its converter fails."""
    x, out = (graph.tensors[tensors[0]].shape for tensors in (graph.inputs, graph.outputs))
    with tempfile.TemporaryDirectory() as folder, silenced():
        read, converted, written = (Path(folder, name) for name in ("in.tflite", "all.mnn", "out.mnn"))
        read.write_bytes(write_model(graph))
        words = ("-f", "TFLITE", "--modelFile", read, "--MNNModel", converted, "--bizCode", "bench")
        mnn_tools.mnnconvert(["mnnconvert", *map(str, words)])
        if not converted.exists():
            raise DeviceError("MNN's converter has not taken the network; leave mnn out of --against")
        _cut(converted, written, form)
        return MnnContender(written, (x, out), threads)


def _cut(converted: Path, written: Path, form: InputForm) -> None:
    """Its convolutions alone, from an input in their own layout or from planes, without the way back at the end."""
    nodes = MNN.expr.load_as_dict(str(converted)).values()
    convolutions = [node for node in nodes if node.op_type.startswith(_OP)]
    read = {node.inputs[0].name for node in convolutions}
    made = {node.name for node in convolutions}
    first = next(node for node in convolutions if node.inputs[0].name not in made)
    last = next(node for node in convolutions if node.name not in read)
    given = MNN.expr.placeholder(first.inputs[0].shape, MNN.expr.NCHW if form == "planes" else MNN.expr.NC4HW4)
    given.name = "input"
    packed = MNN.expr.convert(given, MNN.expr.NC4HW4) if form == "planes" else given
    first.set_inputs([packed, *first.inputs[1:]])
    MNN.expr.save([last], str(written))


def _planar(shape: tuple[int, ...], values: Float32Array) -> Any:
    return MNN.Tensor(shape, MNN.Halide_Type_Float, values, MNN.Tensor_DimensionType_Caffe)

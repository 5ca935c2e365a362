"""Builds a graph of convolutions in ncnn, in fp32, with its own packing of channels.

What its files hold is written here: a text of layers, and weights in their order (github.com/Tencent/ncnn/wiki).
"""

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.model.graph import Conv2D, DepthwiseConv2D, Graph, Node
from texelflow.gpu_delegate.model.operators import attributes_of
from texelflow.gpu_delegate.model.packing import Float32Array

from .contenders import Contender, InputForm

with contextlib.suppress(ImportError):  # whether it is installed is asked before
    import ncnn

_MAGIC = "7767517"
_FLOAT32 = b"\0\0\0\0"  # in front of weights: as they are, neither halves nor bytes
_NOT_FLOAT = (
    *("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_packed", "bf16_storage"),
    *("int8_inference", "int8_packed", "int8_storage", "int8_arithmetic"),
)
_AS_IT_IS = 1  # of extract: the output keeps the layout that it was computed in


class NcnnContender:
    """ncnn's network. An extractor remembers what it computed, so each run makes one."""

    def __init__(self, graph: Graph, form: InputForm, threads: int) -> None:
        self._net, self._is_packed = ncnn.Net(), form == "packed"  # the network first: it must not outlive allocators
        self._allocators = ncnn.UnlockedPoolAllocator(), ncnn.PoolAllocator()
        options = self._net.opt
        options.num_threads, options.lightmode = threads, True
        options.use_vulkan_compute, options.use_packing_layout = False, True
        options.blob_allocator, options.workspace_allocator = self._allocators
        for name in _NOT_FLOAT:
            setattr(options, f"use_{name}", False)
        self._last = f"x{len(graph.nodes)}"
        _load(self._net, _layers(graph), b"".join(part for node in graph.nodes for part in _weights(graph, node)))
        self._input = ncnn.Mat()

    def write(self, bhwc: Float32Array) -> None:
        """See Contender."""
        self._planes = np.ascontiguousarray(bhwc[0].transpose(2, 0, 1))  # the matrix has no copy of its own
        self._input = ncnn.Mat(self._planes)
        size = _packed(bhwc.shape[3])
        if self._is_packed and size > 1:
            packed = ncnn.Mat()
            ncnn.convert_packing(self._input, packed, size, ncnn.Option())
            self._input = packed

    def run(self) -> object:
        """See Contender."""
        extractor = self._net.create_extractor()
        extractor.input("x0", self._input)
        return extractor.extract(self._last, _AS_IT_IS)

    def read(self) -> Float32Array:
        """See Contender."""
        extractor = self._net.create_extractor()
        extractor.input("x0", self._input)
        return np.array(extractor.extract(self._last)[1]).transpose(1, 2, 0)[None]


def open_ncnn(graph: Graph, form: InputForm, threads: int) -> Contender:
    """The graph in ncnn."""
    return NcnnContender(graph, form, threads)


def _load(net: Any, layers: str, weights: bytes) -> None:
    """By a file: of weights in memory it keeps the address of a copy that is gone."""
    net.load_param_mem(layers)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "weights.bin")
        path.write_bytes(weights)
        if net.load_model(str(path)):
            raise DeviceError("ncnn has not taken the network; leave ncnn out of --against")


def _packed(channels: int) -> int:
    """How many channels ncnn keeps together on this machine, for so many of them: what its own layers make of them."""
    net = ncnn.Net()
    _load(net, f"{_MAGIC}\n2 2\nInput input 0 1 x0\nPooling layer0 1 1 x0 x1 0=0 1=1 2=1\n", b"")
    extractor = net.create_extractor()
    values = np.zeros((channels, 1, 1), np.float32)
    extractor.input("x0", ncnn.Mat(values))
    return int(extractor.extract("x1", _AS_IT_IS)[1].elempack)


def _layers(graph: Graph) -> str:
    count = len(graph.nodes) + 1
    lines = [_MAGIC, f"{count} {count}", "Input input 0 1 x0"]
    return "\n".join([*lines, *(_layer(graph, node, number) for number, node in enumerate(graph.nodes)), ""])


def _layer(graph: Graph, node: Node, number: int) -> str:
    """Parameters by number: outputs, kernel, stride, zeros left, top, right and bottom, bias, weights, ReLU, groups."""
    conv, weights = attributes_of(node, Conv2D), graph.tensors[node.inputs[1]].shape
    around, outputs = conv.padding, graph.tensors[node.outputs[0]].shape[3]
    size = int(np.prod(weights))
    text = (
        f"0={outputs} 1={weights[1]} 3={conv.stride[0]} 4={around.left} 14={around.top} 15={around.right} "
        f"16={around.bottom} 5=1 6={size} 9={int(conv.activation == 'RELU')}"
    )
    is_depthwise = isinstance(conv, DepthwiseConv2D)
    op, groups = ("ConvolutionDepthWise", f" 7={outputs}") if is_depthwise else ("Convolution", "")
    return f"{op} layer{number} 1 1 x{number} x{number + 1} {text}{groups}"


def _weights(graph: Graph, node: Node) -> tuple[bytes, ...]:
    """OIHW, or CHW where depthwise, then the bias."""
    values, bias = (np.asarray(graph.tensors[i].data, np.float32) for i in node.inputs[1:3])
    is_depthwise = isinstance(node.attributes, DepthwiseConv2D)
    ordered = values[0].transpose(2, 0, 1) if is_depthwise else values.transpose(0, 3, 1, 2)
    return _FLOAT32, np.ascontiguousarray(ordered).tobytes(), bias.tobytes()

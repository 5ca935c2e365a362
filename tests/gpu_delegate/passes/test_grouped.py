"""Grouped convolutions in graphs that no reader has checked: computed right, or refused."""

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from tests.helpers.engine import on_gpu, worst
from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import ABSENT, Attributes, Conv2D, DepthwiseConv2D, Graph, TransposeConv2D
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph


def drawn(weights: tuple[int, ...], channels: int, out: int, attributes: Attributes, op: str = "CONV_2D") -> Graph:
    """One convolution of a 3x4 map."""
    g = GraphBuilder()
    return g.graph(g.node(op, [g.input(1, 3, 4, channels), g.random(*weights), ABSENT], (1, 3, 4, out), attributes))


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize(("channels", "out", "groups"), [(6, 4, 2), (9, 3, 3), (8, 16, 4), (8, 8, 2), (24, 16, 2)])
def test_is_computed_right(context: Context, channels: int, out: int, groups: int, fuse: bool) -> None:
    graph = drawn((out, 1, 1, channels // groups), channels, out, Conv2D())
    x = np.random.default_rng(1).uniform(-1, 1, (1, 3, 4, channels)).astype(np.float32)
    weights = graph.tensors[1].data
    assert weights is not None
    parts = zip(np.split(x, groups, -1), np.split(weights[:, 0, 0], groups), strict=True)
    wanted = np.concatenate([part @ own.T for part, own in parts], -1)
    found = on_gpu(context, compile_graph(graph, SOFTWARE, CompileOptions(fuse=fuse)), [x])
    assert worst(found, [wanted]) < 1e-5


@pytest.mark.parametrize(
    ("convolution", "said"),
    [
        (lambda: drawn((4, 1, 1, 4), 6, 4, Conv2D()), "for 6 channels"),
        (lambda: drawn((3, 1, 1, 3), 6, 3, Conv2D()), "for 6 channels"),
        (lambda: drawn((4, 1, 1, 6), 6, 5, Conv2D()), "for 6 channels"),
        (lambda: drawn((1, 1, 1, 5), 6, 5, DepthwiseConv2D(), "DEPTHWISE_CONV_2D"), "for 6 channels"),
        (lambda: drawn((4, 1, 1, 3), 6, 4, TransposeConv2D(), "TRANSPOSE_CONV"), "for 6 channels"),
        (lambda: drawn((4096, 1, 1, 4095), 8190, 4096, Conv2D()), "4096 channels in 2 groups take too much memory"),
    ],
)
def test_is_refused(convolution: Callable[[], Graph], said: str) -> None:
    with pytest.raises(UnsupportedError, match=said):
        compile_graph(convolution(), SOFTWARE)


def test_of_a_vector_is_refused() -> None:
    graph = drawn((4, 1, 1, 6), 6, 4, Conv2D())
    flat = {**graph.tensors, 1: replace(graph.tensors[1], shape=(4, 6))}
    with pytest.raises(UnsupportedError, match=r"weights of shape \[4, 6\]"):
        compile_graph(replace(graph, tensors=MappingProxyType(flat)), SOFTWARE)

"""Custom ops that Python functions compute, as operators of an interpreter: their inputs, outputs and shapes there."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..base.errors import UnsupportedError, UsageError
from ..custom.custom_op import (
    CustomOp,
    CustomOperator,
    OpArray,
    computed_by_functions,
    computed_outputs,
    custom_name,
    shapes_of_outputs,
)
from ..model.graph import ABSENT, Graph, Node, Opaque, Shape, Tensor
from .native_tensors import array_at, memory_of, reshape, shape_at, tensor_at
from .structs import TYPES, TfLiteContext, TfLiteDelegateParams, integers_at


class FunctionKernel:
    """A group of them, which TensorFlow Lite runs as one operator: one after the other."""

    def __init__(
        self, graph: Graph, ops: Mapping[str, CustomOp], nodes: tuple[int, ...], outputs: tuple[int, ...]
    ) -> None:
        """`outputs` are those that others read; the rest has no memory in TensorFlow Lite."""
        self._tensors, self._ops, self._outputs = graph.tensors, ops, frozenset(outputs)
        self._nodes = tuple(graph.nodes[number] for number in sorted(nodes))
        self._made = frozenset(index for node in self._nodes for index in node.outputs)
        self._shapes: dict[int, Shape] = {}  # of what it makes, once it has been prepared

    def prepare(self, context: TfLiteContext) -> None:
        """Give its outputs shapes. Raises InferenceError for what an operator does not take."""
        self._shapes.clear()
        for node in self._nodes:
            shapes = shapes_of_outputs(self._ops[custom_name(node)], self._operator(context, node))
            self._shapes.update(zip(node.outputs, shapes, strict=True))
            for index in self._outputs.intersection(node.outputs):
                reshape(context, index, self._shapes[index])

    def run(self, context: TfLiteContext) -> None:
        """Raises InferenceError for what a function raises, or returns that does not fit."""
        values = dict[int, OpArray]()
        for node in self._nodes:
            inputs = [None if index == ABSENT else self._value(context, index, values) for index in node.inputs]
            outputs = [replace(self._tensors[index], shape=self._shapes[index]) for index in node.outputs]
            found = computed_outputs(self._ops[custom_name(node)], self._operator(context, node), inputs, outputs)
            for tensor, value in zip(outputs, found, strict=True):
                values[tensor.index] = np.ascontiguousarray(value, tensor.dtype).reshape(tensor.shape)
                if tensor.index in self._outputs:
                    memory = memory_of(tensor_at(context, tensor.index), tensor)
                    array_at(*memory, tensor)[...] = values[tensor.index]

    def _value(self, context: TfLiteContext, index: int, values: Mapping[int, OpArray]) -> OpArray:
        if index in values:
            return values[index]
        tensor = self._now(context, index)
        found = array_at(*memory_of(tensor_at(context, index), tensor), tensor).view()
        found.flags.writeable = False
        return found

    def _operator(self, context: TfLiteContext, node: Node) -> CustomOperator:
        assert isinstance(node.attributes, Opaque), "no rule reads it"
        return CustomOperator(
            node.op,
            node.index,
            tuple(None if index == ABSENT else self._now(context, index) for index in node.inputs),
            tuple(self._tensors[index] for index in node.outputs),
            node.attributes.custom_options,
        )

    def _now(self, context: TfLiteContext, index: int) -> Tensor:
        """A tensor with the shape that it has now. Raises UnsupportedError for one that is no array."""
        tensor = self._tensors[index]
        if index in self._made:
            return replace(tensor, shape=self._shapes[index])
        if tensor_at(context, index).type not in TYPES:
            raise UnsupportedError(f"tensor {index} is {tensor.dtype}, which no array is")
        return replace(tensor, shape=shape_at(context, index))


class FunctionKernels:
    """Those of one graph: which operators they are, and the kernels of the groups that TensorFlow Lite makes."""

    def __init__(self, graph: Graph, ops: Mapping[str, CustomOp]) -> None:
        self.nodes = computed_by_functions(graph)
        self._graph, self._ops = graph, ops
        self._kernels: dict[int, FunctionKernel] = {}

    def __contains__(self, number: int) -> bool:
        return number in self._kernels

    def make(self, params: TfLiteDelegateParams, number: int) -> bool:
        """Make a kernel with this number for a group; whether the group is one of such operators."""
        nodes = integers_at(params.nodes_to_replace)
        if not nodes or not {*nodes} <= {*self.nodes}:
            return False
        self._kernels[number] = FunctionKernel(self._graph, self._ops, nodes, integers_at(params.output_tensors))
        return True

    def free(self, number: int) -> None:
        self._kernels.pop(number, None)

    def kernel(self, number: int) -> FunctionKernel:
        """Raises UsageError for a number that none has."""
        if number not in self._kernels:
            raise UsageError("this operator could not be made")
        return self._kernels[number]

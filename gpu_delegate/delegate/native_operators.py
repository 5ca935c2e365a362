"""Reads the operators of a TensorFlow Lite context."""

import contextlib
import ctypes
from collections.abc import Iterator

from ..base.errors import DeviceError
from .structs import (
    OK,
    TfLiteContext,
    TfLiteDelegateParams,
    TfLiteNode,
    TfLiteRegistration,
    int_array,
    integers_at,
)


def execution_plan(context: TfLiteContext) -> tuple[int, ...]:
    """The numbers of the operators, in the order in which they run. Raises DeviceError."""
    plan = ctypes.c_void_p()
    if context.GetExecutionPlan(ctypes.addressof(context), ctypes.byref(plan)) != OK:
        raise DeviceError("TensorFlow Lite does not tell the order of its operators")
    return integers_at(plan.value)


def operator_at(context: TfLiteContext, index: int) -> tuple[TfLiteNode, TfLiteRegistration]:
    """An operator and its functions, as long as no operator is added. Raises DeviceError."""
    node, registration = ctypes.POINTER(TfLiteNode)(), ctypes.POINTER(TfLiteRegistration)()
    status = context.GetNodeAndRegistration(
        ctypes.addressof(context), index, ctypes.byref(node), ctypes.byref(registration)
    )
    if status != OK or not node or not registration:
        raise DeviceError(f"TensorFlow Lite does not tell its operator {index}")
    return node.contents, registration.contents


@contextlib.contextmanager
def subgraph_context(context: TfLiteContext, number: int) -> Iterator[TfLiteContext]:
    """The context of a subgraph that operators run. Raises DeviceError."""
    address, found = ctypes.addressof(context), ctypes.c_void_p()
    if context.AcquireSubgraphContext(address, number, ctypes.byref(found)) != OK or not found.value:
        raise DeviceError(f"TensorFlow Lite does not give its subgraph {number}")
    try:
        yield TfLiteContext.from_address(found.value)
    finally:
        context.ReleaseSubgraphContext(address, number)


def groups_of(context: TfLiteContext, nodes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """How TensorFlow Lite would group operators if they were handed over to a delegate now. Raises DeviceError."""
    return tuple(integers_at(group.nodes_to_replace) for group in _previewed(context, nodes))


def outputs_of(context: TfLiteContext) -> tuple[int, ...]:
    """The graph's outputs as far as operators write them, by what a delegate would have to give that took them all.

    It may be more where TensorFlow Lite would make several groups of them: what goes from one to another. Raises
    DeviceError.
    """
    groups = _previewed(context, execution_plan(context))
    return tuple(dict.fromkeys(index for group in groups for index in integers_at(group.output_tensors)))


def _previewed(context: TfLiteContext, nodes: tuple[int, ...]) -> "ctypes.Array[TfLiteDelegateParams]":
    """What the operators of groups would be given. It lasts until TensorFlow Lite is asked again."""
    wanted, groups, count = int_array(nodes), ctypes.c_void_p(), ctypes.c_int()
    status = context.PreviewDelegatePartitioning(
        ctypes.addressof(context), ctypes.addressof(wanted), ctypes.byref(groups), ctypes.byref(count)
    )
    if status != OK or not groups.value:
        raise DeviceError("TensorFlow Lite does not tell how it groups operators")
    return (TfLiteDelegateParams * count.value).from_address(groups.value)

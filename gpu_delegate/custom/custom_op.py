"""Custom ops that Python functions compute: what such a function is given, and what it has to return."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.errors import InferenceError, ModelError, TexelflowError, UsageError
from ..model.graph import Graph, Node, Opaque, Shape, Tensor
from ..model.reasons import BY_FUNCTION
from .flexbuffer import flexbuffer_map

OpArray = npt.NDArray[Any]
MAX_CUSTOM_ELEMENTS = 1 << 28  # of one output


@dataclass(frozen=True)
class CustomOperator:
    """One operator of a custom op, as its function sees it.

        def scaled(inputs, operator):  # arrays of operator.inputs, in their order
            print(operator.op, operator.index, [tensor.name for tensor in operator.inputs + operator.outputs])
            return inputs[0] * operator.options.get("factor", len(operator.custom_options))

        op = texelflow.custom_op("Scaled", scaled)

    Tensors have names, dtypes and quantization; shapes of inputs are those of this run, of outputs those of the file.
    """

    op: str
    index: int  # of the operator, in the file
    inputs: tuple[Tensor | None, ...]  # with names, dtypes, quantization, the shapes of now; None: left out
    outputs: tuple[Tensor, ...]  # as in the file
    custom_options: bytes = field(default=b"", repr=False)

    @cached_property
    def options(self) -> Mapping[str, Any]:
        """The options, of an op that has a FlexBuffer of a map there. Raises ModelError for other bytes."""
        return MappingProxyType(flexbuffer_map(self.custom_options))


ComputeFunction = Callable[[Sequence[Any], CustomOperator], Any]  # arrays to an array, or to one for each output
ShapesFunction = Callable[[CustomOperator], Sequence[Sequence[int]]]  # of the outputs


@dataclass(frozen=True)
class CustomOp:
    """A custom op by its name in files, and the functions that compute it; `custom_op` makes one.

        op = texelflow.custom_op("Twice", lambda inputs, operator: 2 * inputs[0])
        print(op.name, op.function, op.shapes)

    Arrays are NumPy's; `shapes` is None where outputs have the shapes of the file.
    """

    name: str
    function: ComputeFunction
    shapes: ShapesFunction | None = None


def shapes_of_outputs(op: CustomOp, operator: CustomOperator) -> tuple[Shape, ...]:
    """Before an operator runs. Raises TexelflowError, InferenceError for what the function raises."""
    shapes_of = op.shapes
    if shapes_of is None:
        return tuple(tensor.shape for tensor in operator.outputs)
    given = _called(operator, lambda: [*map(tuple, shapes_of(operator))])
    shapes = tuple(tuple(int(size) for size in shape) for shape in given)
    if len(shapes) != len(operator.outputs):
        raise _failed(operator, f"{len(shapes)} shapes for {len(operator.outputs)} outputs")
    for shape in shapes:
        if min(shape, default=0) < 0 or int(np.prod(shape, dtype=object)) > MAX_CUSTOM_ELEMENTS:
            raise _failed(operator, f"an output of shape {list(shape)}")
    return shapes


def computed_outputs(
    op: CustomOp, operator: CustomOperator, inputs: Sequence[OpArray | None], outputs: Sequence[Tensor]
) -> tuple[OpArray, ...]:
    """The values of an operator's outputs, which have shapes now. Raises as shapes_of_outputs."""
    found = _called(operator, lambda: op.function(inputs, operator))
    values = [*found] if isinstance(found, tuple | list) else [found]
    if len(values) != len(outputs):
        raise _failed(operator, f"its function returns {len(values)} arrays for {len(outputs)} outputs")
    return tuple(_fitting(operator, *pair) for pair in zip(values, outputs, strict=True))


NO_CUSTOM_OPS: Mapping[str, CustomOp] = MappingProxyType({})


def custom_op(name: str, function: ComputeFunction, shapes: ShapesFunction | None = None) -> CustomOp:
    """A custom op of a model for GpuDelegate(custom_ops=[...]): `function` computes each of its operators with NumPy.

        def scaled(inputs, operator):
            return inputs[0] * operator.options["factor"]

        delegate = texelflow.GpuDelegate(custom_ops=[texelflow.custom_op("Scaled", scaled)])

    function: takes the inputs, arrays that may be read until it returns (None for one that is left out), and the
    operator: `options` (its FlexBuffer as a mapping), `custom_options` (the bytes), `inputs` and `outputs` (tensors
    with name, shape, dtype and quantization). Returns the output as an array, or one for each output.
    name: that of the op in files.
    shapes: takes the operator and returns the shape of each output; without it these are as in the file.

    It runs on the CPU, wherever an operator of that name has no code of the engine's own. Raises UsageError.
    """
    if not isinstance(name, str) or not name:
        raise UsageError(f"a custom op has the name that it has in files, not {name!r}")
    for what, given in (("function", function), ("shapes", shapes)):
        if not callable(given) and (given is not None or what == "function"):
            raise UsageError(f"{what} of the custom op {name} is a function, not {type(given).__name__}")
    return CustomOp(name, function, shapes)


def by_name(ops: Iterable[CustomOp]) -> Mapping[str, CustomOp]:
    """Custom ops by their names. Raises UsageError for anything else, and for two of one name."""
    if isinstance(ops, CustomOp | str) or not isinstance(ops, Iterable):
        raise UsageError("custom_ops is a list of what texelflow.custom_op gives")
    found = dict[str, CustomOp]()
    for op in ops:
        if not isinstance(op, CustomOp):
            raise UsageError(f"custom_ops is a list of what texelflow.custom_op gives, not of {type(op).__name__}")
        if op.name in found:
            raise UsageError(f"custom_ops has two of the name {op.name}")
        found[op.name] = op
    return MappingProxyType(found)


def custom_name(node: Node) -> str:
    """The name of a custom op that no rule reads; "" of other nodes."""
    return node.op if isinstance(node.attributes, Opaque) and node.attributes.custom_code else ""


def with_functions(graph: Graph, ops: Mapping[str, CustomOp]) -> Graph:
    """The graph, in which operators that these compute say so as the reason for which no kernel does."""
    if not any(custom_name(node) in ops for node in graph.nodes):
        return graph
    return replace(graph, nodes=tuple(_with_function(node, ops) for node in graph.nodes))


def computed_by_functions(graph: Graph) -> tuple[int, ...]:
    """The positions of the operators that functions compute."""
    attributes = [node.attributes for node in graph.nodes]
    return tuple(n for n, each in enumerate(attributes) if isinstance(each, Opaque) and each.reason == BY_FUNCTION)


def _with_function(node: Node, ops: Mapping[str, CustomOp]) -> Node:
    if custom_name(node) not in ops or not isinstance(node.attributes, Opaque):
        return node
    return replace(node, attributes=replace(node.attributes, reason=BY_FUNCTION))


def _called(operator: CustomOperator, call: Callable[[], Any]) -> Any:
    try:
        with np.errstate(all="ignore"):
            return call()
    except (ModelError, InferenceError) as error:
        raise _failed(operator, str(error)) from error
    except TexelflowError:
        raise
    except Exception as error:
        text = " ".join(str(error).split())
        raise _failed(
            operator, f"its function raised {type(error).__name__}" + (f": {text}" if text else "")
        ) from error


def _fitting(operator: CustomOperator, value: Any, output: Tensor) -> OpArray:
    found = np.asarray(value)
    wanted = f"{output.dtype} of shape {list(output.shape)}"
    if found.shape != output.shape or not np.can_cast(found.dtype, output.dtype, "same_kind"):
        given = f"{found.dtype} of shape {list(found.shape)}"
        raise _failed(operator, f"its function returns {given} for {output.name}, not {wanted}")
    return found


def _failed(operator: CustomOperator, what: str) -> InferenceError:
    return InferenceError(f"operator {operator.index} ({operator.op}): {what}")

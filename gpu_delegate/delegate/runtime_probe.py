"""The child process of runtime_check.py: checks a runtime's structs, by a delegate that only looks.

This is the child's side of runtime_check.py: the one process that may crash or hang. The delegate takes two of three
operators of a small model, and every field that is read or written here or elsewhere gets a value that is known.
"""

import ctypes
import importlib
import json
import sys
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np

from ..model.graph import Activated, Graph, Node, Shape, Tensor
from ..reading.reader import read_model
from ..reading.writer import write_model
from .model_finder import differences, find_model
from .native_operators import execution_plan, groups_of, operator_at
from .native_tensors import reshape
from .option_probe import option_differences
from .structs import (
    ALLOWS_DYNAMIC_TENSORS,
    ERROR,
    IN_FILE,
    NO_BUFFER_HANDLE,
    OK,
    CopyFunction,
    FreeFunction,
    FreeHandleFunction,
    InitFunction,
    NodeFunction,
    PrepareFunction,
    TfLiteContext,
    TfLiteDelegate,
    TfLiteDelegateParams,
    TfLiteRegistration,
    TfLiteTensor,
    context_at,
    int_array,
    integers_at,
)

_SHAPE, _RESIZED = (1, 2, 3, 4), (1, 5, 3, 4)
_FACTORS = np.array((2, -3, 5, -7), np.float32)
_INPUT, _FACTOR, _PRODUCT, _ACTIVATED, _NEGATED = range(5)  # tensors
_CODES = (18, 19, 59)  # of MUL, RELU, NEG in the schema
_DELEGATED = 51  # of a delegate's operator
_NODE_KEY, _HANDLE = 4711, 42
_MOST_INTEGERS = 16
_FLOAT = 1  # kTfLiteFloat32
_NAME, _REFUSED = b"TexelflowProbe", "refused by the probe"


def main() -> None:
    """Print a JSON list of differences for the module that is named on the command line."""
    module = importlib.import_module(sys.argv[1])
    print(json.dumps([*Probe().differences_of(module), *option_differences(module)]), flush=True)


class Probe:
    """The delegate; one interpreter is made with it."""

    def __init__(self) -> None:
        self.differences: list[str] = []
        self._calls: list[str] = []
        self._data = write_model(_graph())
        self._refuses = False
        self._shape: Shape = _SHAPE
        self._values = np.zeros(_SHAPE, np.float32)
        self._late = NodeFunction(self._guard(self._invoke))
        self._struct = TfLiteDelegate(
            None, PrepareFunction(self._guard(self._prepare)), CopyFunction(self._guard(self._copy)), CopyFunction(),
            FreeHandleFunction(self._free_handle), ALLOWS_DYNAMIC_TENSORS, None,
        )  # fmt: skip
        self._registration = TfLiteRegistration(
            InitFunction(self._init), FreeFunction(self._free), NodeFunction(self._guard(self._prepare_node)),
            NodeFunction(), None, 0, _NAME, 1, None, None, 0,
        )  # fmt: skip

    def differences_of(self, module: Any) -> list[str]:
        """Run the model; afterwards with another shape, and with an error."""
        interpreter = module.Interpreter(model_content=self._data, experimental_delegates=[self])
        for shape in (_SHAPE, _RESIZED):
            self._shape = shape
            interpreter.resize_tensor_input(_INPUT, shape)
            interpreter.allocate_tensors()
            self._values = np.random.default_rng(0).normal(0, 1, shape).astype(np.float32)
            interpreter.set_tensor(_INPUT, self._values)
            interpreter.invoke()
            found = interpreter.get_tensor(_NEGATED)
            self._expect("the result", np.array_equal(found, -np.maximum(self._values * _FACTORS, 0)), True)
        self._refuses, text = True, ""
        try:
            interpreter.invoke()
        except RuntimeError as error:
            text = str(error)
        self._expect("an error's text in the exception", _REFUSED in text, True)
        del interpreter
        wanted = {"prepare", "init", "prepare node", "invoke", "copy", "free"}
        self._expect("functions that were called", sorted(set(self._calls) & wanted), sorted(wanted))
        return self.differences

    def _get_native_delegate_pointer(self) -> int:
        return ctypes.addressof(self._struct)

    # Checks -------------------------------------------------------------------------------------------------------

    def _expect(self, what: str, found: object, wanted: object) -> None:
        if found != wanted:
            self.differences.append(f"{what}: {found!r} instead of {wanted!r}")

    def _guard(self, function: Callable[..., int]) -> Callable[..., int]:
        def guarded(*arguments: Any) -> int:
            try:
                return function(*arguments)
            except Exception as error:
                self.differences.append(f"{function.__name__.strip('_')}: {type(error).__name__}: {error}")
                return ERROR

        return guarded

    def _check_tensor(self, context: TfLiteContext, index: int, wanted: Tensor) -> None:
        tensor, what = context.tensors[index], f"tensor {index}:"
        size_bytes = int(np.prod(wanted.shape)) * 4
        self._expect(f"{what} type", tensor.type, _FLOAT)
        self._expect(f"{what} dims", _integers(tensor.dims), wanted.shape)
        self._expect(f"{what} bytes", tensor.bytes, size_bytes)
        self._expect(f"{what} name", tensor.name, wanted.name.encode())
        self._expect(f"{what} allocation_type", tensor.allocation_type == IN_FILE, wanted.is_constant)
        self._expect(f"{what} delegate", tensor.delegate, None)
        self._expect(f"{what} buffer_handle", tensor.buffer_handle, NO_BUFFER_HANDLE)
        self._expect(f"{what} data_is_stale, is_variable", (tensor.data_is_stale, tensor.is_variable), (False, False))
        if wanted.is_constant:
            self._expect(f"{what} data", _floats(tensor), _FACTORS.tolist())

    def _check_operators(self, context: TfLiteContext, graph: Graph) -> None:
        self._expect("execution plan", execution_plan(context), (0, 1, 2))
        for wanted, code in zip(graph.nodes, _CODES, strict=True):
            node, registration = operator_at(context, wanted.index)
            found = _integers(node.inputs), _integers(node.outputs)
            self._expect(f"operator {wanted.index}: inputs, outputs", found, (wanted.inputs, wanted.outputs))
            named = registration.builtin_code, registration.custom_name, node.delegate
            self._expect(f"operator {wanted.index}: builtin_code, custom_name, delegate", named, (code, None, None))

    # What TensorFlow Lite calls -----------------------------------------------------------------------------------

    def _prepare(self, address: int, delegate: int) -> int:
        """Some runtimes undo delegates to give inputs other shapes, and call this again."""
        context = context_at(address)
        if "prepare" not in self._calls:
            self._check_context(context, delegate)
        self._calls.append("prepare")
        nodes = int_array((0, 1))
        self._expect("a preview of groups", groups_of(context, (0, 1)), ((0, 1),))
        replace = context.ReplaceNodeSubsetsWithDelegateKernels
        self._expect("Replace", replace(address, self._registration, ctypes.addressof(nodes), delegate), OK)
        self._patch(context)
        return OK

    def _check_context(self, context: TfLiteContext, delegate: int) -> None:
        graph = _graph()
        self._expect("the delegate's address", delegate, ctypes.addressof(self._struct))
        self._expect("tensors_size", context.tensors_size, len(graph.tensors))
        for index, tensor in graph.tensors.items():
            self._check_tensor(context, index, tensor)
        self._check_operators(context, graph)
        found = differences(read_model(self._data), find_model(context).graph)
        self._expect("the model", next(found, ""), "")

    def _patch(self, context: TfLiteContext) -> None:
        """The new operator gets its function late."""
        plan = execution_plan(context)
        self._expect("execution plan afterwards", (len(plan), plan[-1]), (2, 2))
        node, registration = operator_at(context, plan[0])
        named = registration.builtin_code, registration.custom_name, registration.version
        self._expect("the new operator: builtin_code, custom_name, version", named, (_DELEGATED, _NAME, 1))
        self._expect("the new operator: user_data", node.user_data, _NODE_KEY)
        registration.invoke = self._late

    def _init(self, _: int, buffer: int, __: int) -> int:
        self._calls.append("init")
        self._guard(self._check_params)(TfLiteDelegateParams.from_address(buffer))
        return _NODE_KEY

    def _check_params(self, params: TfLiteDelegateParams) -> int:
        self._expect("params: delegate", params.delegate, ctypes.addressof(self._struct))
        self._expect("params: nodes_to_replace", _integers(params.nodes_to_replace), (0, 1))
        self._expect("params: output_tensors", _integers(params.output_tensors), (_ACTIVATED,))
        self._expect("params: input_tensors", sorted(_integers(params.input_tensors)), [_INPUT, _FACTOR])
        return OK

    def _prepare_node(self, address: int, node: Any) -> int:
        self._calls.append("prepare node")
        context, own = context_at(address), node.contents
        self._expect("the new operator: outputs", _integers(own.outputs), (_ACTIVATED,))
        self._expect("the new operator: delegate", own.delegate, ctypes.addressof(self._struct))
        self._expect("its input's dims", _integers(context.tensors[_INPUT].dims), self._shape)
        tensor = context.tensors[_ACTIVATED]
        if _integers(tensor.dims) != self._shape:
            reshape(context, _ACTIVATED, self._shape)
            self._expect("dims after ResizeTensor", _integers(tensor.dims), self._shape)
            self._expect("bytes after ResizeTensor", tensor.bytes, int(np.prod(self._shape)) * 4)
        return OK

    def _invoke(self, address: int, node: Any) -> int:
        self._calls.append("invoke")
        context = context_at(address)
        if self._refuses:
            context.ReportError(address, _REFUSED.encode())
            return ERROR
        self._expect("user_data in invoke", node.contents.user_data, _NODE_KEY)
        self._expect("the input's data", _floats(context.tensors[_INPUT]), self._values.ravel().tolist())
        output = context.tensors[_ACTIVATED]
        self._expect("the output's delegate", output.delegate, ctypes.addressof(self._struct))
        output.buffer_handle, output.data_is_stale = _HANDLE, True
        return OK

    def _copy(self, address: int, delegate: int, handle: int, tensor: Any) -> int:
        self._calls.append("copy")
        output, context = tensor.contents, context_at(address)
        place = ctypes.addressof(context.tensors[_ACTIVATED])
        found = delegate, handle, ctypes.addressof(output)
        self._expect("CopyFromBufferHandle", found, (ctypes.addressof(self._struct), _HANDLE, place))
        values = np.maximum(self._values * _FACTORS, 0)
        if output.data and output.bytes == values.nbytes:
            ctypes.memmove(output.data, values.ctypes.data, values.nbytes)
        return OK

    def _free_handle(self, _: int, __: int, handle: Any) -> None:
        handle.contents.value = NO_BUFFER_HANDLE

    def _free(self, _: int, key: int) -> None:
        self._calls.append("free")
        self._expect("user_data in free", key, _NODE_KEY)


def _graph() -> Graph:
    shapes = (_SHAPE, _FACTORS.shape, _SHAPE, _SHAPE, _SHAPE)
    tensors = {
        index: Tensor(index, f"probe {index}", shape, data=_FACTORS if index == _FACTOR else None)
        for index, shape in enumerate(shapes)
    }
    nodes = (
        Node("MUL", (_INPUT, _FACTOR), (_PRODUCT,), Activated(), 0),
        Node("RELU", (_PRODUCT,), (_ACTIVATED,), index=1),
        Node("NEG", (_ACTIVATED,), (_NEGATED,), index=2),
    )
    return Graph("probe", MappingProxyType(tensors), nodes, (_INPUT,), (_NEGATED,))


def _integers(address: int | None) -> tuple[int, ...]:
    """A TfLiteIntArray, if it has as few values as any here; else how many it seems to have."""
    count = ctypes.c_int.from_address(address).value if address else 0
    return integers_at(address) if 0 <= count <= _MOST_INTEGERS else (count,)


def _floats(tensor: TfLiteTensor) -> list[float]:
    """A tensor's values as far as they can be read."""
    if not tensor.data or tensor.bytes > 1 << 16:
        return []
    values: list[float] = np.frombuffer(ctypes.string_at(tensor.data, tensor.bytes), np.float32).tolist()
    return values

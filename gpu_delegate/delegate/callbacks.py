"""The C side of a delegate: the struct and the functions that TensorFlow Lite calls.

No exception of a handler reaches TensorFlow Lite: it becomes an error status, and its text is reported.
"""

import ctypes
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from ..base.errors import DeviceError, TexelflowError, UsageError
from .interruption import GuardedFunction, postponed_signals
from .native_operators import execution_plan, operator_at
from .structs import (
    ALLOWS_DYNAMIC_TENSORS,
    ERROR,
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
    int_array,
)

NAME = b"TexelflowGpuDelegate"

Replace = Callable[[tuple[int, ...]], None]  # hands operators over to the delegate


class DelegateHandler(Protocol):
    """What a delegate does when TensorFlow Lite calls it; whatever it raises fails the call."""

    def apply(self, context: TfLiteContext, replace: Replace) -> None:
        """Choose operators of a graph, and replace them."""

    def make_kernel(self, context: TfLiteContext, params: TfLiteDelegateParams) -> int:
        """A positive number for a new operator that stands for a partition."""

    def free_kernel(self, number: int) -> None: ...

    def prepare_kernel(self, context: TfLiteContext, number: int) -> None:
        """Its inputs have shapes now; its outputs need some."""

    def run_kernel(self, context: TfLiteContext, number: int) -> None: ...

    def fetch(self, context: TfLiteContext, handle: int, tensor: TfLiteTensor) -> None:
        """Copy what a buffer handle stands for into the memory of its tensor."""

    def failed(self, error: BaseException) -> None:
        """Keep an error, for which a call has failed."""


class NativeDelegate:
    """The struct of a delegate, and the functions in it.

    They exist for as long as the process, some kilobytes for each delegate: whenever TensorFlow Lite frees a tensor, it
    looks at the struct of the delegate that wrote it, also after it has freed the last operator, and tells nobody when
    that is over. All that is worth freeing belongs to the handler, which is not kept alive from here.
    """

    def __init__(self, handler: DelegateHandler, name: str = "GpuDelegate") -> None:
        """`name` is in front of errors."""
        self._handler, self._name = weakref.ref(handler), name
        prepare = GuardedFunction(self._prepare, self._refuse, ERROR, interrupted=OK)
        copy = GuardedFunction(self._copy_from_buffer_handles, self._refuse, ERROR)
        self._guarded = prepare, copy
        self._of_kernels: dict[int, tuple[GuardedFunction, ...]] = {}  # by number, until it is freed
        self._freed: tuple[GuardedFunction, ...] = ()  # of the last one that was freed
        self._struct = TfLiteDelegate(
            None, prepare.as_type(PrepareFunction), copy.as_type(CopyFunction), CopyFunction(),
            FreeHandleFunction(self._free_buffer_handle), ALLOWS_DYNAMIC_TENSORS, None,
        )  # fmt: skip
        self._registration = TfLiteRegistration(
            InitFunction(self._init), FreeFunction(), NodeFunction(), NodeFunction(), None, 0, NAME, 1, None, None, 0,
        )  # fmt: skip
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))

    @property
    def address(self) -> int:
        """Where the struct lies."""
        return ctypes.addressof(self._struct)

    # What TensorFlow Lite calls -----------------------------------------------------------------------------------

    def _prepare(self, address: int) -> int:
        context = TfLiteContext.from_address(address)

        def replace(nodes: tuple[int, ...]) -> None:
            array = int_array(nodes)
            with postponed_signals():
                status = context.ReplaceNodeSubsetsWithDelegateKernels(
                    address, self._registration, ctypes.addressof(array), self.address
                )
                if status != OK:
                    raise DeviceError("TensorFlow Lite does not hand operators over to the delegate")
                self._guard_kernels(context)

        return self._status(address, lambda handler: handler.apply(context, replace))

    def _guard_kernels(self, context: TfLiteContext) -> None:
        """Give each operator of the delegate functions of its own, which know it without being told."""
        address, own = ctypes.addressof(context), ctypes.cast(self._registration.init, ctypes.c_void_p).value
        for index in execution_plan(context):
            node, registration = operator_at(context, index)
            if ctypes.cast(registration.init, ctypes.c_void_p).value == own:
                number = node.user_data or 0
                guarded = tuple(
                    GuardedFunction(partial(work, number=number), self._refuse, ERROR, address)
                    for work in (self._prepare_kernel, self._run_kernel, self._free_kernel)
                )
                prepare, invoke, free = guarded
                registration.prepare, registration.invoke = prepare.as_type(NodeFunction), invoke.as_type(NodeFunction)
                registration.free = free.as_type(FreeFunction)
                self._of_kernels[number] = (*self._of_kernels.get(number, ()), *guarded)

    def _init(self, address: int, buffer: int, _length: int) -> int:
        context, params = TfLiteContext.from_address(address), TfLiteDelegateParams.from_address(buffer)
        made = list[int]()
        self._status(address, lambda handler: made.append(handler.make_kernel(context, params)))
        return made[0] if made else 0

    def _prepare_kernel(self, address: int, number: int) -> int:
        context = TfLiteContext.from_address(address)
        return self._status(address, lambda handler: handler.prepare_kernel(context, number))

    def _run_kernel(self, address: int, number: int) -> int:
        context = TfLiteContext.from_address(address)
        return self._status(address, lambda handler: handler.run_kernel(context, number))

    def _free_kernel(self, address: int, number: int) -> int:
        """TensorFlow Lite makes operators anew for each change of shapes."""
        if number:
            self._freed = self._of_kernels.pop(number, ())  # this function, which still runs, is one of them
        if not number or self._handler() is None:
            return OK
        return self._status(address, lambda handler: handler.free_kernel(number))

    def _copy_from_buffer_handles(self, address: int) -> int:
        """All of them, since the function does not know which is asked for."""
        context = TfLiteContext.from_address(address)

        def fetch(handler: DelegateHandler) -> None:
            for index in range(context.tensors_size):
                tensor = context.tensors[index]
                if tensor.data_is_stale and tensor.delegate == self.address:
                    handler.fetch(context, tensor.buffer_handle, tensor)
                    tensor.data_is_stale = False

        return self._status(address, fetch)

    def _free_buffer_handle(self, _address: int, _delegate: int, handle: Any) -> None:
        handle.contents.value = NO_BUFFER_HANDLE  # what it stood for belongs to an operator

    def _status(self, address: int, action: Callable[[DelegateHandler], None]) -> int:
        """OK if the handler does it without raising anything. Raises what is no Exception, as signals' handlers do."""
        handler = self._handler()
        try:
            if handler is None:
                raise UsageError(f"its {self._name} does not exist any more")
            action(handler)
        except Exception as error:
            return self._refuse(address, error)
        return OK

    def _refuse(self, address: int, error: BaseException) -> int:
        """Keep and report an error. `address` may be 0, where a signal came too early."""
        handler = self._handler()
        if handler is not None:
            handler.failed(error)
        if address:
            _report(address, error, self._name)
        return ERROR


def _report(address: int, error: BaseException, name: str) -> None:
    """Have TensorFlow Lite put the error's text into the exception that its caller raises.

    It takes a format and values, and appends the text to others without a space.
    """
    text = str(error) if isinstance(error, TexelflowError) else f"{type(error).__name__}: {error}"
    encoded = f" {name}: {text} ".replace("%", "%%").replace("\0", " ").encode(errors="replace")
    TfLiteContext.from_address(address).ReportError(address, encoded)

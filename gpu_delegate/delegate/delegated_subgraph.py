"""One graph of an interpreter: replaces its operators, prepares them and runs them."""

from collections.abc import Callable

from ..base.errors import UsageError
from .bound_tensors import TensorBinding, check_bindable
from .census import OtherOperators, count_others
from .delegate_kernel import DelegateKernel
from .engine import DelegateEngine, LoadedPartition
from .function_kernel import FunctionKernels
from .native_operators import groups_of
from .native_tensors import number_of, tensor_at
from .planning import DelegatedModel, KernelPlan
from .structs import TfLiteContext, TfLiteDelegateParams, TfLiteTensor, integers_at


class DelegatedSubgraph:
    """What a delegate has of one graph: that of a signature, or the only one."""

    def __init__(self, number: int, opened: Callable[[], DelegateEngine]) -> None:
        """`number` is that of the subgraph in the file; `opened` gives the engine, opened anew if it was closed."""
        self.number, self._opened = number, opened
        self.model: DelegatedModel | None = None
        self.functions: FunctionKernels | None = None  # of custom ops
        self.others: OtherOperators | None = None  # once it has run
        self._loaded: dict[frozenset[int], LoadedPartition] = {}  # that no kernel has taken yet, by their operators
        self._kernels: dict[int, DelegateKernel | None] = {}  # None: a group of constants, which others compute
        self._makers: dict[int, DelegateKernel] = {}  # of tensors
        self._bindings: dict[tuple[int, bool], TensorBinding] = {}  # by tensor, and whether as an output

    @property
    def is_applied(self) -> bool:
        """Whether it has operators in TensorFlow Lite's graph."""
        return self.model is not None and bool(self._kernels)

    def load(self, context: TfLiteContext, model: DelegatedModel) -> None:
        """Load all partitions. Raises UnsupportedError where TensorFlow Lite would cut the graph in another way."""
        for group in groups_of(context, model.nodes) if model.nodes else ():
            model.kernel_of(group)
        engine = self._opened()
        for plan in model.kernels:
            self._loaded[plan.computed] = engine.load(plan.compiled, self.number)
        self.model = model

    def clear(self) -> None:
        """Forget all that is loaded, which the engine frees."""
        self._kernels.clear()
        self._makers.clear()
        self._loaded.clear()

    # What TensorFlow Lite calls -----------------------------------------------------------------------------------

    def has_kernel(self, number: int) -> bool:
        return number in self._kernels or (self.functions is not None and number in self.functions)

    def make_kernel(self, params: TfLiteDelegateParams, number: int) -> None:
        """For one of the groups that TensorFlow Lite has formed of the operators."""
        if self.functions is not None and self.functions.make(params, number):
            return
        assert self.model is not None
        plan = self.model.kernel_of(integers_at(params.nodes_to_replace))
        kernel = self._kernels[number] = self._kernel_for(plan) if plan else None
        if kernel is not None:
            self._makers |= dict.fromkeys(kernel.plan.outputs, kernel)

    def free_kernel(self, number: int) -> None:
        if self.functions is not None:
            self.functions.free(number)
        kernel = self._kernels.pop(number, None)
        if kernel is not None:
            self._makers = {index: maker for index, maker in self._makers.items() if maker is not kernel}
            kernel.release()

    def prepare_kernel(self, context: TfLiteContext, number: int) -> None:
        if self.functions is not None and number in self.functions:
            self.functions.kernel(number).prepare(context)
            return
        kernel = self._kernels[number]
        if kernel is not None:
            kernel.prepare(context)

    def run_kernel(self, context: TfLiteContext, number: int) -> None:
        """What is kept on the GPU is marked as stale in TensorFlow Lite's memory."""
        if self.functions is not None and number in self.functions:
            self.functions.kernel(number).run(context)
            return
        kernel = self._kernels[number]
        if kernel is None:
            return
        sources = {index: self._makers[index] for index in kernel.plan.uploads if index in self._makers}
        for index in kernel.plan.uploads:
            tensor = tensor_at(context, index)
            if tensor.data_is_stale:
                sources[index] = self._source(tensor.buffer_handle, index)
        kernel.run(context, sources)
        for index in kernel.plan.kept:
            tensor = tensor_at(context, index)
            tensor.buffer_handle, tensor.data_is_stale = number, True
        self._count_others(context)

    def fetch(self, context: TfLiteContext, handle: int, tensor: TfLiteTensor) -> None:
        """A handle is the number of the kernel that has computed the tensor, and is never used again.

        Raises UsageError for one of a kernel that has been freed, or that does not compute the tensor.
        """
        index = number_of(context, tensor)
        self._source(handle, index).fetch(index, tensor)

    # What the caller asks for -------------------------------------------------------------------------------------

    def notice_resets(self, context: TfLiteContext) -> None:
        """Reset what TensorFlow Lite has set to zero since the last run."""
        for kernel in self._kernels.values():
            if kernel is not None:
                kernel.notice_resets(context)

    def bind(self, binding: TensorBinding) -> None:
        """Have a tensor's values come from an object of OpenGL, or go there. Raises UsageError."""
        assert self.model is not None
        check_bindable(self.model, binding.index, binding.is_output)
        for kernel in self._kernels.values():
            if kernel is not None and kernel.has(binding):
                self._bindings[binding.index, binding.is_output] = kernel.bind(binding)

    def unbind(self, index: int) -> None:
        """Have it in RAM again."""
        for is_output in (False, True):
            self._bindings.pop((index, is_output), None)
        for kernel in self._kernels.values():
            if kernel is not None:
                kernel.unbind(index)

    def _kernel_for(self, plan: KernelPlan) -> DelegateKernel:
        assert self.model is not None
        loaded, on_cpu = self._loaded.pop(plan.computed, None), self.model.read_on_cpu
        kernel = DelegateKernel(self._opened(), self.model.file, plan, loaded, on_cpu, self.number)
        kernel.bindings.update({key: binding for key, binding in self._bindings.items() if kernel.has(binding)})
        return kernel

    def _source(self, handle: int, index: int) -> DelegateKernel:
        """The kernel that has computed a tensor which is on the GPU alone. Raises UsageError for another handle."""
        kernel = self._kernels.get(handle)
        if kernel is None or index not in kernel.plan.kept:
            raise UsageError(f"tensor {index} has the buffer handle {handle}, which is none of this GpuDelegate's")
        return kernel

    def _count_others(self, context: TfLiteContext) -> None:
        if self.others is None and self.model is not None:
            found = self.model.found
            outputs = (tensor_at(context, index) for plan in self.model.kernels for index in plan.outputs)
            own = next((tensor.delegate for tensor in outputs), None)  # there are none of what nothing reads
            left = {*found.reasons}.difference(self.functions.nodes if self.functions else ())
            self.others = count_others(context, found.graph, left, own or 0)

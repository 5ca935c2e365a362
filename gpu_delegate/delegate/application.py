"""TensorFlow Lite's calls of a delegate go in; the operators of one interpreter are replaced, prepared and run."""

import contextlib
import ctypes
import sys

from ..errors import TexelflowError, UsageError
from ..reading.reader import read_model
from ..weights_cache import WeightsCache, facts_of_device
from .bound_tensors import TensorBinding, check_bindable
from .callbacks import Replace
from .census import OtherOperators, count_others
from .delegate_kernel import DelegateKernel
from .engine import DelegateEngine, LoadedPartition
from .model_finder import FoundModel, find_model
from .native_operators import groups_of
from .native_tensors import number_of, tensor_at
from .options import GpuDelegateOptions
from .planning import DelegatedModel, KernelPlan, plan_model
from .report import report_lines, summary_line
from .selection import rates_of
from .serialization import serialization_of
from .structs import TfLiteContext, TfLiteDelegateParams, TfLiteTensor, integers_at
from .worker import RELEASED, GlWorker, open_worker


class Application:
    """A delegate in one interpreter: see DelegateHandler."""

    def __init__(
        self, options: GpuDelegateOptions, worker: GlWorker | None, weights_cache: WeightsCache | None = None
    ) -> None:
        """`worker` is one that is open already, for a context of the caller's."""
        self._options, self._worker, self._cache = options, worker, weights_cache
        self._engine: DelegateEngine | None = None
        self._place = 0  # of the context that it is applied to
        self._loaded: dict[frozenset[int], LoadedPartition] = {}  # that no kernel has taken yet, by their operators
        self._kernels: dict[int, DelegateKernel | None] = {}  # None: a group of constants, which others compute
        self._makers: dict[int, DelegateKernel] = {}  # of tensors
        self._last_number = 0
        self._others: OtherOperators | None = None
        self._bindings: dict[tuple[int, bool], TensorBinding] = {}  # by tensor, and whether as an output
        self._is_of_caller = worker is not None
        self._is_released = False
        self.model: DelegatedModel | None = None
        self.renderer = ""
        self.error: BaseException | None = None

    @property
    def summary(self) -> str:
        """Who runs how many operators, in one line; of those that are left to TensorFlow Lite once it has run."""
        if self.model is None:
            return "no operator on the GPU" + (f": {self.error}" if self.error else "")
        others = self._others or OtherOperators(0, 0)
        return summary_line(self.model.found, others.xnnpack, others.builtin)

    @property
    def buffer_bytes(self) -> int:
        """Of GL buffers: tensors, weights, and what copies need once a partition has run."""
        return self._engine.buffer_bytes if self._engine else 0

    # What TensorFlow Lite calls -----------------------------------------------------------------------------------

    def apply(self, context: TfLiteContext, replace: Replace) -> None:
        """Leaves the graph as it is if anything fails before operators are replaced; raises that if it is strict.

        It is called again where TensorFlow Lite has undone all delegates to allow for other shapes, and for branches
        and bodies of control flow, which are left alone.
        """
        place = ctypes.addressof(context)
        if not self._place:
            self._place = place
            try:
                self.model = self._planned(context)
            except Exception as error:
                if self._options.strict:
                    raise
                self.failed(error)
                self._tell(f"texelflow: TensorFlow Lite runs the whole model on the CPU: {error}")
                with contextlib.suppress(TexelflowError):
                    self._close()
        if self.model and self.model.nodes and place == self._place:
            replace(self.model.nodes)

    def make_kernel(self, params: TfLiteDelegateParams) -> int:
        """For one of the groups that TensorFlow Lite has formed of the operators."""
        assert self.model is not None
        nodes = integers_at(params.nodes_to_replace)
        plan = self.model.kernel_of(nodes)
        self._last_number += 1
        kernel = self._kernels[self._last_number] = self._kernel_for(plan) if plan else None
        if kernel is not None:
            self._makers |= dict.fromkeys(kernel.plan.outputs, kernel)
        return self._last_number

    def free_kernel(self, number: int) -> None:
        kernel = self._kernels.pop(number, None)
        if kernel is not None:
            self._makers = {index: maker for index, maker in self._makers.items() if maker is not kernel}
            kernel.release()

    def prepare_kernel(self, context: TfLiteContext, number: int) -> None:
        kernel = self._kernel(number)
        if kernel is not None:
            kernel.prepare(context)

    def run_kernel(self, context: TfLiteContext, number: int) -> None:
        """What is kept on the GPU is marked as stale in TensorFlow Lite's memory."""
        kernel = self._kernel(number)
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

    def failed(self, error: BaseException) -> None:
        self.error = error

    # What the caller asks for -------------------------------------------------------------------------------------

    def bind(self, binding: TensorBinding) -> None:
        """Have a tensor's values come from an object of OpenGL, or go there. Raises UsageError."""
        if self._is_released:
            raise UsageError(RELEASED)
        if self.model is None or not self._kernels:
            why = f"nothing runs on the GPU: {self.error}" if self.error else "make an interpreter with it first"
            raise UsageError(f"this GpuDelegate has no tensors to bind; {why}")
        if not self._is_of_caller:
            raise UsageError("this GpuDelegate has a context of its own; give it that of what is bound, as context=...")
        check_bindable(self.model, binding.index, binding.is_output)
        for kernel in self._kernels.values():
            if kernel is not None and kernel.has(binding):
                self._bindings[binding.index, binding.is_output] = kernel.bind(binding)

    def unbind(self, index: int) -> None:
        """Have it in RAM again."""
        if self._is_released:
            raise UsageError(RELEASED)
        for is_output in (False, True):
            self._bindings.pop((index, is_output), None)
        for kernel in self._kernels.values():
            if kernel is not None:
                kernel.unbind(index)

    def release(self) -> None:
        """Free all that is in OpenGL: kernels raise from now on. A second call does nothing.

        Raises UsageError on a thread where the worker does not work, and can be called again on another one.
        """
        self._is_released = True
        self._close()

    def _close(self) -> None:
        self._kernels.clear()
        self._makers.clear()
        self._loaded.clear()
        if self._engine is not None:
            self._engine.release()
        elif self._worker is not None:
            self._worker.release()
        self._engine = self._worker = None

    def _planned(self, context: TfLiteContext) -> DelegatedModel:
        """Decide and load everything. Raises what fails."""
        engine = self._engine = self._opened()
        self.renderer = engine.renderer
        read = self._cache.read_model if self._cache else read_model
        found = find_model(context, self._options.model, read)
        model = self._plan(found, engine)
        for group in groups_of(context, model.nodes) if model.nodes else ():
            model.kernel_of(group)
        for plan in model.kernels:
            self._loaded[plan.computed] = engine.load(plan.compiled)
        for line in report_lines(model.found):
            self._tell(line)
        self._tell_of_serialization(engine.serialization_failure)
        return model

    def _plan(self, found: FoundModel, engine: DelegateEngine) -> DelegatedModel:
        """What runs where, by a plan that others with the same cache have, if there is one."""
        options = self._options

        def make() -> DelegatedModel:
            return plan_model(found, options, engine.device, rates_of(engine.is_software), engine.plan)

        if self._cache is None:
            return make()
        names = ("max_delegated_partitions", "min_nodes_per_partition")
        facts = {"use": "in a delegate", **vars(options.compiling), **{name: getattr(options, name) for name in names}}
        return self._cache.shared(found.graph, {**facts, **facts_of_device(engine.device)}, make)

    def _tell_of_serialization(self, failure: str) -> None:
        if self._options.is_serializing_in_part:
            failure = 'of serialization_dir, model_token and the flag "enable_serialization" some are missing'
        if failure:
            self._tell(f"texelflow: programs are not serialized: {failure}")

    def _kernel_for(self, plan: KernelPlan) -> DelegateKernel:
        assert self.model is not None
        loaded, on_cpu = self._loaded.pop(plan.computed, None), self.model.read_on_cpu
        kernel = DelegateKernel(self._opened(), self.model.file, plan, loaded, on_cpu)
        kernel.bindings.update({key: binding for key, binding in self._bindings.items() if kernel.has(binding)})
        return kernel

    def _source(self, handle: int, index: int) -> DelegateKernel:
        """The kernel that has computed a tensor which is on the GPU alone. Raises UsageError for another handle."""
        kernel = self._kernels.get(handle)
        if kernel is None or index not in kernel.plan.kept:
            raise UsageError(f"tensor {index} has the buffer handle {handle}, which is none of this GpuDelegate's")
        return kernel

    def _kernel(self, number: int) -> DelegateKernel | None:
        """Raises UsageError for one that does not exist."""
        if self._is_released:
            raise UsageError(RELEASED)
        if number not in self._kernels:
            raise UsageError(f"this operator could not be made: {self.error}")
        return self._kernels[number]

    def _opened(self) -> DelegateEngine:
        if self._is_released:
            raise UsageError(RELEASED)
        if self._engine is not None:
            return self._engine
        options = self._options
        self._worker = self._worker or open_worker(None, self._cache)
        return DelegateEngine(
            self._worker, options.compiling, options.wait_type, self._cache, serialization_of(options)
        )

    def _count_others(self, context: TfLiteContext) -> None:
        if self._others is None and self.model is not None:
            found = self.model.found
            outputs = (tensor_at(context, index) for plan in self.model.kernels for index in plan.outputs)
            own = next((tensor.delegate for tensor in outputs), None)  # there are none of what nothing reads
            self._others = count_others(context, found.graph, found.reasons, own or 0)

    def _tell(self, line: str) -> None:
        if not self._options.quiet and sys.stderr is not None:  # a program without a console has none
            with contextlib.suppress(OSError, ValueError):  # or has closed it
                print(line, file=sys.stderr)

"""Runs a compiled network on the CPU: BHWC arrays in, BHWC arrays out."""

import contextlib
import ctypes
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from ...base.disk_cache import DiskCache
from ...base.errors import UsageError
from ...model.graph import ABSENT, Graph, KeptState
from ...model.layout import FLOAT_BYTES, Precision
from ...model.packing import Float32Array, check_values, in_file_type, to_kernels
from ...model.state_values import StateValues, check_names
from ...plan.compiled_parts import PartWork
from .arenas import Arenas
from .compiler import CompiledCode, native_target
from .image import NativeImage, image_of
from .loading import load_image, rounds_of, with_weights_reserved
from .native_program import NativeProgram, target_for
from .native_states import NativeStates
from .planes import from_planes, reserve_floats, values_of, write_planes
from .pool import WorkerPool, default_threads
from .step_pointers import StepPointers
from .work import StepAddresses, WorkTable

_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int32] * 4)


_Made = TypeVar("_Made")


class SharesModels(Protocol):
    """What a network needs of a WeightsCache."""

    def shared(self, source: Graph, facts: Mapping[str, object], make: Callable[[], _Made]) -> _Made:
        """What is made of a model with choices that have these names in messages: once, and raising UsageError so."""
        ...

    def check_run(self) -> None:
        """Raise UsageError before it is finalized."""
        ...

    def arenas(self) -> Arenas:
        """What its networks compute in."""
        ...


class NativeNetwork:
    """One model as machine code. Not for use from several threads at once.

    Inputs have memory of their own, run after run. What is between them and the outputs, and these, has an arena that
    the networks of a WeightsCache use in turns: there outputs are read inside of `turn`. A network without a cache has
    an arena of its own.
    """

    def __init__(
        self,
        image: NativeImage,
        code: CompiledCode,
        pool: WorkerPool,
        owns_pool: bool = False,
        weights_cache: SharesModels | None = None,
        states: NativeStates | None = None,
    ) -> None:
        """Image and code as load_image gives them. Variables are in `states`, where other networks of the model have
        them, too, or in memory of its own."""
        self.image, self.pool, self._cache = image, pool, weights_cache
        self._code, self._owns_pool = code, owns_pool
        self._own = reserve_floats(image.own_floats - image.shared_floats)
        self.own_states = NativeStates()
        self._shared_states = states or self.own_states
        self._kept = dict[int, Float32Array]()
        for state in image.states:
            self._kept |= self._states_with(state).reserve(image, state)
        self._memories = dict[int, Float32Array]()  # of tensors that do not lie in an arena of others
        self._arenas = weights_cache.arenas() if weights_cache else None
        self._arena = None if weights_cache else reserve_floats(image.shared_floats)
        for tensor, place in image.constants.items():  # nothing else ever lies there
            memory = self.memory(tensor)
            memory[:] = image.weights[place : place + memory.size]
        inputs, outputs = ([image.tensors[t].own for t in side] for side in (image.inputs, image.outputs))
        self.input_shapes, self.input_dtypes = ([t.shape for t in inputs], [np.dtype(t.dtype) for t in inputs])
        self.output_shapes, self.output_dtypes = ([t.shape for t in outputs], [np.dtype(t.dtype) for t in outputs])
        self._moves = [  # what takes the place of a state before the next run
            (self._states_with(state), state.name, state.written)
            for state in image.states
            if state.written != ABSENT and not self._lies_there(state)
        ]
        self._copies = self._state_copies() if self._arenas is None else None  # None: found in each turn's arena
        self._pointers = StepPointers(image, self._own, self._kept)
        if self._arena is not None:
            self._pointers.move(self._arena)
        self.steps = [self._step(number) for number in range(len(image.steps))]
        self._table = WorkTable(image.rounds, self.steps)

    @classmethod
    def load(
        cls,
        graph: Graph,
        threads: int | None = None,
        pool: WorkerPool | None = None,
        cache: DiskCache | None = None,
        weights_cache: SharesModels | None = None,
        precision: Precision = "fp32",
        states: NativeStates | None = None,
    ) -> "NativeNetwork":
        """A network for this machine, in a pool that may have others, or by so many threads of its own.

        Without a number it has two. It measures whether its runs take less time by one (thread_choice.py). Weights and
        machine code are those of `weights_cache`, if there is one. `precision` is of products, fp32 or bf16; those of
        quantized networks are exact. Raises UnsupportedError for what it cannot compute, DeviceError without LLVM and
        where the CPU lacks the precision, UsageError for TEXELFLOW_CPU and for what `weights_cache` refuses.
        """
        target = target_for(graph, native_target(precision))
        used = pool or WorkerPool(target, threads or default_threads(), adapts=True)

        def make() -> tuple[NativeImage, CompiledCode]:
            return load_image(graph, target, used.threads, cache)

        facts = {"backend": "the CPU's own code", "processor": target.name, "threads": used.threads}
        facts["precision"] = target.precision
        image, code = weights_cache.shared(graph, facts, make) if weights_cache else make()
        return cls(image, code, used, owns_pool=pool is None, weights_cache=weights_cache, states=states)

    def copy(self) -> "NativeNetwork":
        """The same code with memory and states of its own, in the same pool and in no WeightsCache."""
        return NativeNetwork(self.image, self._code, self.pool)

    @property
    def work(self) -> PartWork:
        """Of one run."""
        return PartWork(len(self.image.steps), sum(step.macs for step in self.image.steps))

    def run(self, inputs: Sequence[npt.NDArray[Any]] | npt.NDArray[Any] | None = None) -> tuple[npt.NDArray[Any], ...]:
        """Output tensors, as copies, for one input tensor or one per input; without any, for what is in memory.

        Raises UsageError for other inputs than the model's.
        """
        if inputs is not None:
            self._write_inputs((inputs,) if isinstance(inputs, np.ndarray) else inputs)
        with self.turn():
            self.compute()
            return tuple(self.read(number) for number in self.image.outputs)

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """What is computed in the block can be read to its end; then another network may compute there.

        It may be inside of another one of the same network. Without a WeightsCache outputs stay there behind it, too.
        """
        if self._arenas is None or self._arena is not None:
            yield
            return
        with self._arenas.lent(self.image.shared_floats) as self._arena:
            self._pointers.move(self._arena)
            try:
                yield
            finally:
                self._arena = None

    def compute(self) -> None:
        """All steps, on the inputs that are in memory; one call, without Python's lock.

        Raises UsageError as check_run, InferenceError where TensorFlow Lite would refuse to run: indices out of range.
        """
        self.check_run()
        with self.turn():
            self.pool.run(self._table)
            self.finish_run()

    def finish_run(self) -> None:
        """What follows all steps in each run, in the network's turn: states get their next values.

        Raises InferenceError as compute.
        """
        for kept, written in self._state_copies() if self._copies is None else self._copies:
            kept[:] = written
        if faults := self.image.faults:
            faults.check(self.read(faults.tensor))

    def _state_copies(self) -> list[tuple[Float32Array, Float32Array]]:
        return [(states.memory(name), self.memory(written)) for states, name, written in self._moves]

    def _lies_there(self, state: KeptState) -> bool:
        """Whether it is in its memory already."""
        tensors = self.image.tensors
        return state.read != ABSENT and tensors[state.read].place == tensors[state.written].place

    def _states_with(self, state: KeptState) -> NativeStates:
        return self._shared_states if state.is_shared else self.own_states

    def states(self) -> StateValues:
        """What it keeps from run to run, by name, in the types and shapes of the file."""
        return self._shared_states.read() | self.own_states.read()

    def restore_states(self, values: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Have it keep what states() gave; what is not named stays. Raises UsageError for others than it has."""
        check_names(values, self.states())
        for states in (self._shared_states, self.own_states):
            states.write(values)

    def reset_states(self, names: Collection[str] | None = None) -> None:
        """Have it keep what it did before the first run: of all, or of these."""
        for states in (self._shared_states, self.own_states):
            states.reset(names)

    def check_run(self) -> None:
        """Raise UsageError before the WeightsCache is finalized, if it is in one."""
        if self._cache:
            self._cache.check_run()

    def write(self, tensor: int, values: npt.NDArray[Any]) -> None:
        """Values of a tensor: exactly its type and shape in the file, all finite. Raises UsageError for others."""
        stored = self.image.tensors[tensor]
        given = to_kernels(check_values(values, stored.own), stored.own, stored.shape)
        write_planes(self.memory(tensor), given, stored.shape, stored.storage)

    def take(self, tensor: int, source: "NativeNetwork") -> None:
        """An input from another network, whose output of that number it is, in the turn of that one."""
        own, theirs = self.image.tensors[tensor], source.image.tensors[tensor]
        if (own.shape, own.storage) == (theirs.shape, theirs.storage):
            self.memory(tensor)[:] = source.memory(tensor)
        else:
            self.write(tensor, source.read(tensor))

    def read(self, tensor: int) -> npt.NDArray[Any]:
        """A stored tensor in its type and shape in the file."""
        stored = self.image.tensors[tensor]
        values = from_planes(self.memory(tensor), stored.shape, stored.storage)
        return in_file_type(values, stored.own).reshape(stored.own.shape)

    def read_into(self, tensor: int, found: npt.NDArray[Any]) -> None:
        """The same into an array of that type and shape, in one copy where no value changes."""
        stored = self.image.tensors[tensor]
        if stored.storage.is_bytes or found.dtype != np.float32:
            found[...] = self.read(tensor)
        else:
            values = values_of(self.memory(tensor), stored.shape, stored.storage)
            np.copyto(found.reshape(values.shape), values)

    def memory(self, tensor: int) -> Float32Array:
        """The floats of a stored tensor as they lie in memory (planes.py).

        Raises KeyError for a tensor that is not stored, RuntimeError outside of the turn in which it is there.
        """
        known = self._memories.get(tensor)
        if known is not None:
            return known
        stored, shared = self.image.tensors[tensor], self.image.shared_floats
        if stored.place >= self.image.own_floats:
            found = self._kept[stored.place]
        elif stored.place >= shared:
            found = self._own[stored.place - shared : stored.place - shared + stored.floats]
        elif self._arena is None:
            raise RuntimeError(f"{stored.own.name} is there in the network's turn alone")
        else:
            found = self._arena[stored.place : stored.place + stored.floats]
            if self._arenas is not None:
                return found
        self._memories[tensor] = found
        return found

    def close(self) -> None:
        """End its own threads, which else go with it; later runs do without."""
        if self._owns_pool:
            self.pool.close()

    def _write_inputs(self, arrays: Sequence[npt.NDArray[Any]]) -> None:
        numbers = self.image.inputs
        if len(arrays) != len(numbers):
            raise UsageError(f"the model takes {len(numbers)} inputs, not {len(arrays)}")
        for number, array in zip(numbers, arrays, strict=True):
            self.write(number, array)

    def _step(self, number: int) -> StepAddresses:
        step, arrays = self.image.steps[number], self._pointers.arrays(number)
        weights = self.image.weights.ctypes.data + FLOAT_BYTES * step.weights
        return StepAddresses(self._code.address(step.symbol), arrays[0], weights, arrays)


class CheckedNetwork(NativeNetwork):
    """A network with the program that it was made of; all that its plan has a place for can be read and written."""

    def __init__(self, compiled: NativeProgram, code: CompiledCode, pool: WorkerPool | None = None) -> None:
        self.compiled = compiled
        pool = pool or WorkerPool(compiled.target, 1)
        rounds = rounds_of(compiled, pool.threads)
        image = image_of(compiled, code.objects, rounds, compiled.plan.offsets)
        super().__init__(with_weights_reserved(image), code, pool)

    def run_step(self, number: int) -> None:
        """One step, on what its inputs have been given."""
        step = self.image.steps[number]
        self.run_part(number, (0, step.row_groups), (0, step.slice_blocks))

    def run_part(self, number: int, groups: tuple[int, int], blocks: tuple[int, int]) -> None:
        """Some of a step's row groups and slice blocks: from the first number of each on, up to the second."""
        step = self.steps[number]
        _PROTOTYPE(step.kernel)(step.tensors, step.weights, *groups, *blocks)

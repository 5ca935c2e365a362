"""A compiled model as bytes: machine code, calls and places of tensors, weights apart; written, and read with checks.

It leaves out what else a NativeProgram knows (graph, passes, kernels as text), so that a model that was compiled before
starts without these. The cache on disk checks bytes by a checksum; here counts are checked against each other, so that
no place lies outside of the memory that there is.
"""

import base64
import hashlib
import json
import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from ...model.digits import are_digits
from ...model.graph import ABSENT, Faults, KeptState, Quantization, Tensor
from ...model.layout import FLOAT_BYTES, PHWC4, PLAIN, PRECISIONS, MapShape, Precision, Storage, shape_of
from ...model.packing import Float32Array
from .native_program import NativeProgram
from .planes import tensor_floats
from .work import StepRange, WorkRound

WeightsOf = Callable[[str], Float32Array | None]  # by their digest, None where there are none
_HEAD_BYTES = 8  # the length of the description in front of it
_MOST_FLOATS = 1 << 29  # of all tensors together


@dataclass(frozen=True)
class StoredTensor:
    """A tensor between runs: as in the file, and where its planes begin, in floats."""

    own: Tensor
    shape: MapShape
    storage: Storage
    place: int

    @property
    def floats(self) -> int:
        """That it takes."""
        return tensor_floats(self.shape, self.storage)


@dataclass(frozen=True)
class NativeStep:
    """One call: a function, where its tensors and weights begin, in floats, and how far it can be cut.

    `local` says of each tensor whether it lies between steps that take turns, and is there but in part.
    """

    name: str  # of its ops
    symbol: str
    tensors: tuple[tuple[bool, int], ...]  # whether it lies among the weights, and where
    local: tuple[bool, ...]
    weights: int
    row_groups: int
    slice_blocks: int
    macs: int
    group_pixels: int


@dataclass(frozen=True)
class NativeImage:
    """A model ready to run on one kind of CPU."""

    precision: Precision  # of products
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    faults: Faults | None
    states: tuple[KeptState, ...]  # that it keeps from run to run
    tensors: Mapping[int, StoredTensor]  # those that callers may read and write
    steps: tuple[NativeStep, ...]
    rounds: tuple[WorkRound, ...]  # their order
    arena_floats: int
    shared_floats: int  # the first of them: what lives in a run alone
    weights: Float32Array  # of all steps, and constant maps
    objects: tuple[bytes, ...]  # files of machine code
    constants: Mapping[int, int]  # outputs that are such: where they lie among the weights

    @cached_property
    def own_floats(self) -> int:
        """Where states begin, each in memory that other networks may have, too; all of the arena without them."""
        read = [self.tensors[state.read].place for state in self.states if state.read != ABSENT]
        return min(read, default=self.arena_floats)

    @cached_property
    def weights_digest(self) -> str:
        """What the weights are found by."""
        return hashlib.sha256(self.weights.data.cast("B")).hexdigest()

    def to_bytes(self) -> bytes:
        """All of it but its weights, in a row."""
        described = {
            "precision": self.precision,
            "inputs": self.inputs, "outputs": self.outputs, "faults": self.faults and list(vars(self.faults).values()),
            "states": [_described_state(state) for state in self.states],
            "arena_floats": self.arena_floats, "shared_floats": self.shared_floats,
            "tensors": [_described(number, tensor) for number, tensor in self.tensors.items()],
            "steps": [list(vars(step).values()) for step in self.steps],
            "rounds": [[[list(vars(part).values()) for part in task] for task in tasks] for tasks in self.rounds],
            "weights": self.weights_digest, "objects": [len(each) for each in self.objects],
            "constants": list(self.constants.items()),
        }  # fmt: skip
        head = json.dumps(described).encode()
        return len(head).to_bytes(_HEAD_BYTES, "little") + head + b"".join(self.objects)


def image_of(
    program: NativeProgram, objects: Sequence[bytes], rounds: Sequence[WorkRound], tensors: Collection[int] = ()
) -> NativeImage:
    """What running a compiled model takes; callers may read and write inputs and outputs, and further tensors."""
    graph = program.graph
    steps = [_step(program, number) for number in range(len(program.kernels))]
    stored = {number: _stored(program, number) for number in {*graph.inputs, *graph.outputs, *tensors}}
    arena_floats = program.plan.total_bytes // FLOAT_BYTES
    return NativeImage(
        program.precision,
        program.source.inputs,
        program.source.outputs,
        graph.faults,
        graph.states,
        stored,
        tuple(steps),
        tuple(rounds),
        arena_floats,
        program.shared_bytes // FLOAT_BYTES,
        program.weights,
        tuple(objects),
        {number: program.constants[number] for number in graph.outputs if number in program.constants},
    )


def _stored(program: NativeProgram, number: int) -> StoredTensor:
    shape, place = shape_of(program.graph.tensors[number]), program.plan.offsets[number] // FLOAT_BYTES
    return StoredTensor(replace(program.tensor(number), data=None), shape, program.storages[number], place)


def _step(program: NativeProgram, number: int) -> NativeStep:
    kernel = program.kernels[number]
    tensors = [
        (True, program.constants[t]) if t in program.constants else (False, program.plan.offsets[t] // FLOAT_BYTES)
        for t in (*kernel.inputs, *kernel.outputs)
    ]
    return NativeStep(
        kernel.name, kernel.symbol, tuple(tensors),
        tuple(t in program.local for t in (*kernel.inputs, *kernel.outputs)), program.weight_offsets[number],
        kernel.row_groups, kernel.slice_blocks, kernel.macs, kernel.group_pixels,
    )  # fmt: skip


def parse_image(data: bytes, weights_of: WeightsOf) -> NativeImage | None:
    """An image of what to_bytes wrote, None for anything else. Whatever the bytes are, nothing is raised."""
    start = _HEAD_BYTES + int.from_bytes(data[:_HEAD_BYTES], "little")
    try:
        image = _parsed(json.loads(data[_HEAD_BYTES:start]), data[start:], weights_of)
    except (ValueError, TypeError, LookupError, RecursionError, OverflowError, StopIteration):
        return None
    return image if _is_sound(image) else None


def _described(number: int, tensor: StoredTensor) -> list[Any]:
    where = list(vars(tensor.shape).values()), tensor.storage.lanes, tensor.place
    return [*_described_tensor(replace(tensor.own, index=number)), *where]


def _described_tensor(own: Tensor) -> list[Any]:
    meaning = own.quantization and list(vars(own.quantization).values())
    return [own.index, own.name, own.shape, own.dtype, meaning]


def _described_state(state: KeptState) -> list[Any]:
    data = state.own.data
    initial = None if data is None else base64.b85encode(data.tobytes()).decode()
    return [state.read, state.written, state.is_shared, initial, *_described_tensor(state.own)]


def _parsed(described: dict[str, Any], code: bytes, weights_of: WeightsOf) -> NativeImage:
    ends = [*accumulate(_counts(described["objects"]), initial=0)]
    if ends[-1] != len(code):
        raise ValueError("another length")
    tensors = {}
    for *own, shape, lanes, place in described["tensors"]:
        tensor = _tensor(*own)
        storage = PLAIN if lanes == 1 else PHWC4
        tensors[tensor.index] = StoredTensor(tensor, MapShape(*_counts(shape)), storage, _count(place))
    steps = tuple(
        NativeStep(
            str(name),
            str(symbol),
            tuple((bool(w), _count(at)) for w, at in places),
            tuple(map(bool, local)),
            *_counts(rest),
        )
        for name, symbol, places, local, *rest in described["steps"]
    )
    rounds = tuple(
        tuple(tuple(StepRange(*_counts(part)) for part in task) for task in tasks) for tasks in described["rounds"]
    )
    if (weights := weights_of(str(described["weights"]))) is None:
        raise ValueError("no weights")
    inputs, outputs = _counts(described["inputs"]), _counts(described["outputs"])
    return NativeImage(
        _precision(described["precision"]),
        inputs,
        outputs,
        _faults(described["faults"]),
        tuple(_state(*each) for each in described["states"]),
        tensors,
        steps,
        rounds,
        _count(described["arena_floats"]),
        _count(described["shared_floats"]),
        weights,
        tuple(code[start:end] for start, end in pairwise(ends)),
        {_count(tensor): _count(place) for tensor, place in described["constants"]},
    )


def _tensor(number: int, name: str, shape: list[int], dtype: str, meaning: list[Any] | None) -> Tensor:
    return Tensor(_count(number), str(name), _counts(shape), np.dtype(dtype).name, None, _meaning(meaning))


def _state(read: int, written: int, is_shared: bool, initial: str | None, *own: Any) -> KeptState:
    tensor = _tensor(*own)
    if initial is not None:
        values = np.frombuffer(base64.b85decode(initial), tensor.dtype).reshape(tensor.shape)
        tensor = replace(tensor, data=values)
    read, written = (ABSENT if each == ABSENT else _count(each) for each in (read, written))
    return KeptState(tensor, read, written, bool(is_shared))


def _meaning(said: list[Any] | None) -> Quantization | None:
    """What a tensor's integers mean. Raises ValueError where that makes no sense."""
    if said is None:
        return None
    scales, zero_points, dimension = said
    points = tuple(map(operator.index, zero_points))
    if len(points) != len(scales):
        raise ValueError("another number of zero points")
    return Quantization(tuple(map(float, scales)), points, _count(dimension))


def _faults(said: list[Any] | None) -> Faults | None:
    return None if said is None else Faults(_count(said[0]), tuple(map(str, said[1])))


def _counts(values: list[Any]) -> tuple[int, ...]:
    return tuple(map(_count, values))


def _count(value: Any) -> int:
    """A whole number that is not negative. Raises ValueError for anything else."""
    if not isinstance(value, int) or not 0 <= value < 1 << 53:
        raise ValueError(f"{value} is no count")
    return value


def _is_sound(image: NativeImage) -> bool:
    """Whether all places lie where there is something."""
    stored = image.tensors.values()
    ends = [tensor.place + tensor.floats for tensor in stored]
    places = [place for step in image.steps for place in (*step.tensors, (True, step.weights))]
    limits = {True: image.weights.size, False: image.arena_floats}
    parts = [part for tasks in image.rounds for task in tasks for part in task]
    return (
        image.shared_floats <= image.arena_floats <= _MOST_FLOATS
        and all(_is_within(part, image.steps) for part in parts)
        and all(map(_has_size, stored))
        and all(end <= image.arena_floats for end in ends)
        and all(not tensor.place < image.shared_floats < end for tensor, end in zip(stored, ends, strict=True))
        and all(at <= limits[of_weights] for of_weights, at in places)
        and {*image.inputs, *image.outputs, *image.constants} <= image.tensors.keys()
        and all(place + image.tensors[t].floats <= image.weights.size for t, place in image.constants.items())
        and all(_is_kept(state, image) for state in image.states)
        and (image.faults is None or _is_told(image.faults, image.tensors))
    )


def _has_size(tensor: StoredTensor) -> bool:
    """Whether it lies as so many values, or as their digits."""
    size, values = tensor.shape.pixels * tensor.shape.channels, math.prod(tensor.own.shape)
    return size == values or are_digits(size, values, tensor.own.dtype)


def _precision(text: object) -> Precision:
    return next(each for each in PRECISIONS if each == text)


def _is_told(faults: Faults, tensors: Mapping[int, StoredTensor]) -> bool:
    """Whether there is a truth for each message."""
    return faults.tensor in tensors and np.prod(tensors[faults.tensor].own.shape, dtype=int) == len(faults.messages)


def _is_kept(state: KeptState, image: NativeImage) -> bool:
    """Whether a state has a tensor in the memory of states, and what takes its place is as large."""
    sides = [each for each in (state.read, state.written) if each != ABSENT]
    if not sides or not image.tensors.keys() >= {*sides}:
        return False
    floats = {image.tensors[each].floats for each in sides}
    shapes = {image.tensors[each].shape for each in sides}
    values = math.prod(state.own.shape)
    sizes = {shape.pixels * shape.channels for shape in shapes}
    fits = all(size == values or are_digits(size, values, state.own.dtype) for size in sizes)
    return len(floats) == len(shapes) == 1 and fits


def _is_within(part: StepRange, steps: Sequence[NativeStep]) -> bool:
    """Whether a range is one of its step's."""
    step = steps[part.step] if part.step < len(steps) else None
    return (
        step is not None
        and part.y0 <= part.y1 <= step.row_groups
        and part.z0 <= part.z1 <= step.slice_blocks
        and part.shift < step.row_groups * step.group_pixels
        and len(step.local) == len(step.tensors)
    )

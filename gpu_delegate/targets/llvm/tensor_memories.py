"""Where the tensors of a kernel lie, and in which form: pointers, and what they point at."""

from ...model.layout import Storages, plane_floats, shape_of
from ...plan.body import Body
from .index_analysis import Known, Outline
from .ir import POINTER, Function, Register
from .kernel_context import KernelContext, Tables, own_int
from .lanes import PlaneMemory
from .machine import CpuTarget


def forms_in_memory(body: Body, storages: Storages) -> list[tuple[str, int, int, int | None]]:
    """What a function reads and writes: name, floats of a slice's place and from channel to channel, what byte 0 is."""
    tensors = [(f"in{k}", tensor) for k, tensor in enumerate(body.inputs)]
    tensors += [(f"out{k}", tensor) for k, tensor in enumerate(body.outputs)]
    found = list[tuple[str, int, int, int | None]]()
    for name, tensor in tensors:
        shape, storage = shape_of(body.graph.tensors[tensor]), storages[tensor]
        scale, step = (4, 1) if shape.is_vector else (1, plane_floats(shape))
        found.append((name, scale, step, storage.low if storage.is_bytes else None))
    return found


def has_all_planes(body: Body, storages: Storages) -> bool:
    """Whether what is read and written has a plane for each channel of a slice: none is one plane, or has bytes."""
    has_bytes = any(storages[tensor].is_bytes for tensor in (*body.inputs, *body.outputs))
    return not has_bytes and not plain_outputs(body, storages)


def plain_outputs(body: Body, storages: Storages) -> frozenset[str]:
    """The outputs that are one plane."""
    return frozenset(f"out{k}" for k, tensor in enumerate(body.outputs) if storages[tensor].lanes == 1)


def context_of(
    function: Function, body: Body, storages: Storages, tables: Tables, target: CpuTarget, outline: Outline, rows: Known
) -> KernelContext:
    """What surrounds the code of a kernel, whose pointers are loaded; `rows` are the first ones of groups."""
    tensors, weights, *_ = function.parameters
    memories, lows = dict[str, PlaneMemory](), dict[int, Register]()
    for place, (name, scale, step, low) in enumerate(forms_in_memory(body, storages)):
        pointer = function.load(POINTER, function.at(tensors, place, POINTER), 8)
        if low is not None and low not in lows:
            lows[low] = own_int(function, tables, weights, ("low", low), low)
        memories[name] = PlaneMemory(pointer, scale, step, None if low is None else lows[low])
    return KernelContext(outline, rows, tables, weights, memories, plain_outputs(body, storages), target, lows)

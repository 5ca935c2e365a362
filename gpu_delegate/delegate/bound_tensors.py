"""Checks whether a tensor of a planned model can be bound to an OpenGL object."""

import operator
from dataclasses import dataclass

from ..base.errors import UsageError
from ..model.graph import Shape
from .gl_objects import BufferLayout, GlObject
from .planning import DelegatedModel


@dataclass(frozen=True)
class TensorBinding:
    """What the caller has bound to a tensor."""

    index: int  # as get_input_details()[k]["index"] numbers tensors
    given: GlObject
    layout: BufferLayout
    is_output: bool
    shape: Shape | None = None  # of the tensor when this was bound


def tensor_number(index: object) -> int:
    """A tensor's number as an integer. Raises UsageError for what is none."""
    try:
        return operator.index(index)  # type: ignore[arg-type]  # it raises for others
    except TypeError:
        raise UsageError(f"tensor {index} (no tensor of the model) is no input and no output; give its index") from None


def check_bindable(model: DelegatedModel, index: int, is_output: bool) -> None:
    """Raise UsageError where what is bound would not be all that reads the tensor, or that writes it."""
    name = model.found.graph.tensors[index].name if index in model.found.graph.tensors else "no tensor of the model"
    if is_output:
        if not any(index in plan.outputs for plan in model.kernels):
            raise UsageError(f"tensor {index} ({name}) is no output of what runs on the GPU")
        return
    if not any(index in plan.uploads for plan in model.kernels):
        raise UsageError(f"tensor {index} ({name}) is no input of what runs on the GPU")
    if index in model.read_on_cpu:
        raise UsageError(f"tensor {index} ({name}) is read by operators on the CPU, too, which need it in RAM")
    if index in model.written_on_cpu:
        raise UsageError(f"tensor {index} ({name}) is computed by an operator on the CPU")

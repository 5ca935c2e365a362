"""What a way of running a model is to the interpreter: our code for the CPU, OpenGL, TensorFlow Lite."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy.typing as npt

from ..delegate.bound_tensors import TensorBinding
from ..model.graph import Shape
from ..tuning.way_report import InterpreterReport
from .file_details import Details

__all__ = ["AnyTensor", "InterpreterReport", "RunWay"]

AnyTensor = npt.NDArray[Any]


class RunWay(Protocol):
    """A model made ready to run, all of its subgraphs that are run by themselves.

    Tensors have the numbers of the file. Errors are of the types that TensorFlow Lite's interpreter raises.
    """

    @property
    def report(self) -> InterpreterReport: ...
    @property
    def survives_fork(self) -> bool:
        """Whether it works in a process that was forked from the one that made it."""

    def resize(self, subgraph: int, index: int, size: Sequence[int], strict: bool) -> None:
        """Have an input with another shape from the next allocation on. Raises as InputSizes.resize."""

    def allocate(self, subgraph: int) -> None:
        """Be ready to run on inputs of the shapes that were asked for; what is ready stays as it is.

        Raises AllocationError or another RuntimeError where the model cannot run on these.
        """

    def set(self, subgraph: int, index: int, value: Any) -> None:
        """Copy a value of exactly the tensor's type and shape. Raises ValueError for others."""

    def get(self, subgraph: int, index: int, out: AnyTensor | None = None) -> AnyTensor:
        """A copy of a tensor, or `out`, an array of its type and shape, which has it then.

        Raises ValueError for one that is not kept.
        """

    def view(self, subgraph: int, index: int) -> AnyTensor:
        """An array over, or kept alike with, a tensor: what is written there is read by the next run."""

    def bind(self, subgraph: int, binding: TensorBinding) -> None:
        """Have runs read or write a tensor in OpenGL, until another size is allocated. Raises UsageError."""

    def unbind(self, subgraph: int, index: int) -> None:
        """Have a tensor in RAM again; nothing happens to one that is not bound."""

    def invoke(self, subgraph: int) -> None:
        """One run. Raises RuntimeError before allocate(), and for values that TensorFlow Lite refuses."""

    def reset_variables(self) -> None:
        """Set what operators keep from run to run to what it was before the first one; not what VAR_HANDLE names."""

    def shape(self, subgraph: int, index: int) -> Shape:
        """Of a tensor by now."""

    def tensor_details(self, subgraph: int, index: int) -> Details | None:
        """Its own of a tensor, where it has others than the file's."""

    def operators(self, subgraph: int) -> Sequence[Details] | None:
        """Its own of all operators, where it has others than the file's."""

    def close(self) -> None:
        """Free what it holds; a second call does nothing."""

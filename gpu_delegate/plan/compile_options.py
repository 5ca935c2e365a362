"""The options of a compilation, as one value that is handed on from the caller to the compiler."""

from dataclasses import dataclass, replace
from typing import Any

from ..device.device import COMPILE_BUDGET_S
from ..model.layout import Precision
from .memory.memory_options import ARENA, MemoryOptions


@dataclass(frozen=True)
class CompileOptions:
    """How a graph becomes a program."""

    fuse: bool = True  # else one dispatch per op
    keep_all: bool = False  # each tensor has its own memory, so that all can be read afterwards, whatever `memory` says
    precision: Precision = (  # of networks of floats; those with quantized tensors are exact
        "fp32"  # fp16 stores tensors inside the network as halves, fp16-arithmetic multiplies them so; bf16: on CPUs
    )
    compile_budget_s: float = COMPILE_BUDGET_S  # about how long the driver may take; kernels are made shorter for it
    memory: MemoryOptions = ARENA

    def with_memory(self, **changes: Any) -> "CompileOptions":
        """The same with other values of its MemoryOptions."""
        return replace(self, memory=replace(self.memory, **changes))


COMPILE_DEFAULTS = CompileOptions()

"""The delegate's options, named as in TensorFlow Lite, and what follows from them.

docs/delegate.md has a table of what each one does here, and of the original's default.
"""

import math
import operator
import os
from collections.abc import Collection
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, SupportsIndex, get_args

from ..base.errors import UsageError
from ..base.wording import meant
from ..device.device import COMPILE_BUDGET_S
from ..model.graph import Hybrid
from ..model.layout import Precision
from ..plan.compile_options import CompileOptions
from ..plan.memory.memory_options import REWRITTEN
from ..reading.model_file import printable_name
from .synchronization import WaitType

InferencePreference = Literal["fast_single_answer", "sustained_speed", "balanced"]
InferencePriority = Literal["auto", "max_precision", "min_latency", "min_memory_usage"]
ExperimentalFlag = Literal["enable_quant", "gl_only", "enable_serialization"]

# What fills in for "auto", by what comes first, in the original's order.
_ORDERS = MappingProxyType(
    {
        "max_precision": ("max_precision", "min_latency", "min_memory_usage"),
        "min_latency": ("min_latency", "min_memory_usage", "max_precision"),
        "min_memory_usage": ("min_memory_usage", "max_precision", "min_latency"),
    }
)
# How many times the compile budget kernels may take: the more often a model runs, the more it pays.
_BUDGETS = MappingProxyType({"fast_single_answer": 1, "balanced": 2, "sustained_speed": 4})

_GPU = ("gpu", "opengl", "gles", "cuda")  # what some call it
_MOST_TOKEN = 100
_NOT_IN_NAMES = frozenset('/\\:*?"<>|\0')  # of files, on one system or another


@dataclass(frozen=True)
class GpuDelegateOptions:
    """All options but the context. Raises UsageError for a value that is none of an option's."""

    model: str | os.PathLike[str] | bytes | None = None
    strict: bool = False
    is_precision_loss_allowed: bool = False
    inference_preference: InferencePreference = "fast_single_answer"
    inference_priority1: InferencePriority = "max_precision"
    inference_priority2: InferencePriority = "auto"
    inference_priority3: InferencePriority = "auto"
    max_delegated_partitions: int | None = None
    min_nodes_per_partition: int | None = None
    experimental_flags: tuple[ExperimentalFlag, ...] = ("enable_quant",)
    wait_type: WaitType = "passive"
    compile_budget_s: float = COMPILE_BUDGET_S
    hybrid: Hybrid = "expanded"
    quiet: bool = False
    serialization_dir: str | os.PathLike[str] | None = None
    model_token: str | None = None

    def __post_init__(self) -> None:
        if self.model is not None and not isinstance(self.model, str | os.PathLike | bytes):
            raise UsageError(f"model is a path or the bytes of a .tflite file, not {type(self.model).__name__}")
        for name in ("strict", "is_precision_loss_allowed", "quiet"):
            if not isinstance(getattr(self, name), bool):
                raise UsageError(f"{name} is True or False, not {getattr(self, name)!r}")
        one_of("inference_preference", self.inference_preference, get_args(InferencePreference))
        one_of("wait_type", self.wait_type, get_args(WaitType))
        one_of("hybrid", self.hybrid, get_args(Hybrid))
        self._check_flags()
        self._check_priorities()
        self._check_count("max_delegated_partitions", "all that pay")
        self._check_count("min_nodes_per_partition", "as many as pay")
        self._check_serialization()
        budget = self.compile_budget_s
        if isinstance(budget, bool) or not (isinstance(budget, int | float) and 0 < budget < math.inf):
            raise UsageError(f"compile_budget_s is a number of seconds above 0, not {budget!r}")

    @property
    def priorities(self) -> tuple[str, str, str]:
        """What matters, first to last. Where precision may be lost, latency comes first, whatever the others say."""
        if self.is_precision_loss_allowed:
            return _ORDERS["min_latency"]
        given = (self.inference_priority1, self.inference_priority2, self.inference_priority3)
        if given[1] == "auto":
            return _ORDERS[given[0]]
        (last,) = set(_ORDERS) - set(given[:2])
        return given[0], given[1], last

    @property
    def precision(self) -> Precision:
        """Halves between kernels, unless precision comes first."""
        return "fp32" if self.priorities[0] == "max_precision" else "fp16"

    @property
    def compiling(self) -> CompileOptions:
        """Of all partitions together; the longer the interpreter is to run, the longer compilation may take."""
        budget_s = self.compile_budget_s * _BUDGETS[self.inference_preference]
        return CompileOptions(precision=self.precision, compile_budget_s=budget_s, memory=REWRITTEN)

    @property
    def is_serializing(self) -> bool:
        """Whether programs are kept in files of the caller's: only if all three options are given."""
        flag = "enable_serialization" in self.experimental_flags
        return flag and self.serialization_dir is not None and self.model_token is not None

    @property
    def is_serializing_in_part(self) -> bool:
        """Whether some of the three are given, which has no effect."""
        flag = "enable_serialization" in self.experimental_flags
        given = (flag, self.serialization_dir is not None, self.model_token is not None)
        return any(given) and not all(given)

    def _check_serialization(self) -> None:
        folder, token = self.serialization_dir, self.model_token
        if folder is not None and not isinstance(folder, str | os.PathLike):
            raise UsageError(f"serialization_dir is the path of a directory, not {type(folder).__name__}")
        if token is None:
            return
        is_name = isinstance(token, str) and 0 < len(token) <= _MOST_TOKEN and token.isprintable()
        if not is_name or set(token) & _NOT_IN_NAMES:
            wanted = f"1 to {_MOST_TOKEN} printable characters without / and \\"
            raise UsageError(f"model_token is part of a file's name, {wanted}, not {printable_name(repr(token))}")

    def _check_flags(self) -> None:
        flags = self.experimental_flags
        if isinstance(flags, str | bytes) or not isinstance(flags, Collection):
            raise UsageError(f"experimental_flags is a tuple of words, such as ('enable_quant',), not {flags!r}")
        for flag in flags:
            one_of("each of experimental_flags", flag, get_args(ExperimentalFlag))

    def _check_priorities(self) -> None:
        """As the original: the first is none of "auto", nothing stands behind an "auto", none comes twice."""
        names = [f"inference_priority{place}" for place in (1, 2, 3)]
        first, second, third = (getattr(self, name) for name in names)
        words: tuple[str, ...] = get_args(InferencePriority)
        one_of(names[0], first, words[1:])
        one_of(names[1], second, words)
        one_of(names[2], third, words)
        if second == "auto" and third != "auto":
            raise UsageError(f"inference_priority3 is 'auto' where inference_priority2 is, not {third!r}")
        chosen = [word for word in (first, second, third) if word != "auto"]
        if len(set(chosen)) < len(chosen):
            raise UsageError(f"each inference_priority is another one, not {', '.join(map(repr, chosen))}")

    def _check_count(self, name: str, none: str) -> None:
        value = getattr(self, name)
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, SupportsIndex) or operator.index(value) < 1:
            raise UsageError(f"{name} is a whole number from 1 on, or None for {none}, not {value!r}")


def one_of(name: str, value: object, choices: Collection[str]) -> None:
    """Raise UsageError for a value that is none of the choices."""
    if value in choices:
        return
    near = ""
    if isinstance(value, str):
        near = "; 'gl' is the GPU" if value.lower() in _GPU and "gl" in choices else meant(value, choices)
    raise UsageError(f"{name} is one of {', '.join(map(repr, choices))}, not {value!r}{near}")

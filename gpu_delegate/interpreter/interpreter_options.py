"""What the interpreter's constructor is given, checked; names are those of TensorFlow Lite's interpreter, or ours."""

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

from ..base.wording import meant
from ..custom.custom_op import CustomOp
from ..delegate.gl_objects import CallersContext
from ..model.layout import PRECISIONS, Precision
from ..targets.llvm.pool import MOST_POOL_THREADS
from .call_errors import CallTypeError, CallValueError

InterpreterBackend = Literal["auto", "gl", "native", "tflite"]
BACKENDS: tuple[InterpreterBackend, ...] = get_args(InterpreterBackend)


_PRECISIONS: Mapping[str, tuple[Precision, ...]] = MappingProxyType(
    {"gl": ("fp32", "fp16", "fp16-arithmetic"), "native": ("fp32", "bf16"), "tflite": ("fp32",)}
)


@enum.unique
class OpResolverType(enum.Enum):
    """Which kernels TensorFlow Lite computes with; names and numbers are those of its own enumeration.

    AUTO and BUILTIN are its optimized kernels with XNNPACK, BUILTIN_REF its reference kernels,
    BUILTIN_WITHOUT_DEFAULT_DELEGATES the optimized ones without XNNPACK. All but AUTO ask for TensorFlow Lite:
    backend="auto" is "tflite" then.

        kinds = texelflow.OpResolverType
        print(kinds.AUTO, kinds.BUILTIN, kinds.BUILTIN_REF, kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        interpreter = texelflow.Interpreter("model.tflite", experimental_op_resolver_type=kinds.BUILTIN_REF)
    """

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


@dataclass(frozen=True)
class RunOptions:
    """How an interpreter is to run its model."""

    backend: InterpreterBackend = "auto"
    threads: int | None = None
    precision: Precision = "fp32"
    exact: bool = True
    delegates: Sequence[Any] = ()
    resolver: OpResolverType = OpResolverType.AUTO
    preserve_all: bool = False
    further: tuple[tuple[str, bool], ...] = ()  # options of TensorFlow Lite's interpreter that are not as by default
    custom_ops: tuple[CustomOp, ...] = ()
    quiet: bool = False
    context: CallersContext | None = None

    @property
    def needs_tflite(self) -> str:
        """Which option only TensorFlow Lite can follow; "" where there is none."""
        if self.delegates:
            return "experimental_delegates"
        if self.resolver is not OpResolverType.AUTO:
            return f"experimental_op_resolver_type={self.resolver.name}"
        return "experimental_preserve_all_tensors" if self.preserve_all else ""


def checked_options(
    backend: object,
    threads: object,
    num_threads: object,
    precision: object,
    exact: object,
    delegates: object,
    resolver: object,
    preserve_all: object,
    further: dict[str, object],
    custom_ops: Iterable[CustomOp],
    quiet: object,
    context: object,
) -> RunOptions:
    """Of what a caller has given. Raises CallValueError, CallTypeError; ValueErrors as TensorFlow Lite's."""
    one_choice("backend", backend, BACKENDS)
    one_choice("precision", precision, PRECISIONS)
    if threads is not None and num_threads is not None and threads != num_threads:
        raise CallValueError(f"threads is {threads} and num_threads {num_threads}; give one of them")
    kernels = getattr(resolver, "name", None)
    if kernels not in OpResolverType.__members__:
        raise CallValueError(
            f"experimental_op_resolver_type is one of texelflow.OpResolverType, not {resolver!r}: Unrecognized passed "
            "in op resolver type"
        )
    if delegates is not None and not isinstance(delegates, list | tuple):
        raise CallTypeError(f"experimental_delegates is a list of delegates, not {type(delegates).__name__}")
    for each in delegates or ():
        if not hasattr(each, "_get_native_delegate_pointer"):
            raise CallTypeError(
                f"experimental_delegates holds delegates (load_delegate, texelflow.Delegate), not {type(each).__name__}"
            )
    if context is not None and not isinstance(context, CallersContext):
        raise CallTypeError(f"context is a moderngl.Context, not {type(context).__name__}")
    if context is not None and backend not in ("auto", "gl"):
        raise CallValueError(f"context is for backend 'gl', not {backend!r}")
    given: Any = {"backend": backend if context is None else "gl", "precision": precision, "context": context}
    options = RunOptions(
        threads=_threads("threads", threads) or _threads("num_threads", num_threads),
        delegates=tuple(delegates or ()),
        resolver=OpResolverType[str(kernels)],
        preserve_all=bool(preserve_all),
        further=tuple((name, True) for name, value in further.items() if value),
        custom_ops=tuple(custom_ops),
        quiet=bool(quiet),
        **given,
    )
    as_it_is = options.backend == "tflite" or bool(options.needs_tflite)
    options = replace(options, exact=not as_it_is if exact is None else bool(exact))
    precisions = _PRECISIONS.get("tflite" if options.needs_tflite else options.backend, PRECISIONS)
    if options.precision not in precisions:
        by = " or ".join(repr(name) for name, each in _PRECISIONS.items() if options.precision in each)
        raise CallValueError(f"precision {options.precision!r} is for backend {by}, not {options.backend!r}")
    if options.needs_tflite and options.backend not in ("auto", "tflite"):
        raise CallValueError(f"{options.needs_tflite} is for backend 'auto' or 'tflite', not {options.backend!r}")
    return options


def one_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise CallValueError for a value that is none of the choices."""
    if value not in choices:
        near = meant(value, choices) if isinstance(value, str) else ""
        raise CallValueError(f"{name} is one of {', '.join(map(repr, choices))}, not {value!r}{near}")


def _threads(name: str, given: object) -> int | None:
    if given is None:
        return None
    if not isinstance(given, int):
        raise CallValueError(f"type of {name} should be int, not {type(given).__name__}")
    if given < 1:
        raise CallValueError(f"{name} should >= 1, not {given}")
    return min(given, MOST_POOL_THREADS)

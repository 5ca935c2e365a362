"""What the interpreter that asks for a delegate was made of: read from its constructor, for trials beside it."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from ..cpu.interpreter_module import load_interpreter_module
from ..cpu.runtime_trial import RUNTIMES, package_of
from ..tuning.trial_inputs import drawn_input
from .callers_file import OrderOf, model_in_frame, order_in, unknown_order

_KEPT = ("num_threads", "experimental_op_resolver_type")  # options that say what TensorFlow Lite's own kernels take


@dataclass(frozen=True)
class CallersInterpreter:
    """A runtime's module, the file that the interpreter was given, and options that a trial has to have, too."""

    module: Any = None
    model: Any = None  # path or bytes; None where it is not known
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def order(self) -> OrderOf:
        """Of subgraphs' inputs and outputs."""
        return unknown_order if self.model is None else order_in(self.model)

    @property
    def threads(self) -> int | None:
        """Those that were asked for."""
        found: int | None = self.options.get("num_threads")
        return found

    @property
    def runtime(self) -> str:
        """The package with its version."""
        return package_of(self._module.__name__)

    @property
    def _module(self) -> Any:
        return load_interpreter_module() if self.module is None else self.module

    def trial(self, model: bytes, delegates: Sequence[Any] = ()) -> Callable[[], object]:
        """What runs the model once, from arrays to arrays, in an interpreter of its own with these delegates.

        `model` is for where the file is not known. Raises what the interpreter does, ValueError for inputs of texts.
        """
        used = model if self.model is None else self.model
        given = {"model_content": used} if isinstance(used, bytes) else {"model_path": str(used)}
        options = {**self.options, "experimental_delegates": list(delegates)} if delegates else dict(self.options)
        interpreter = self._module.Interpreter(**given, **options)
        interpreter.allocate_tensors()
        inputs = [(detail["index"], drawn_input(detail)) for detail in interpreter.get_input_details()]
        outputs = [detail["index"] for detail in interpreter.get_output_details()]

        def run() -> object:
            for index, values in inputs:
                interpreter.set_tensor(index, values)
            interpreter.invoke()
            return [interpreter.get_tensor(index) for index in outputs]

        return run


def callers_interpreter(frame: FrameType) -> CallersInterpreter:
    """What the constructor of an interpreter was given, by its local variables."""
    name, variables = str(frame.f_globals.get("__name__")), frame.f_locals
    options = {key: variables[key] for key in _KEPT if variables.get(key) is not None}
    return CallersInterpreter(sys.modules[name] if name in RUNTIMES else None, model_in_frame(variables), options)

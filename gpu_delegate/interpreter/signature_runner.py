"""Runs one signature of a model by the names of its inputs and outputs."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from ..base.arrays import as_array
from ..base.wording import meant
from .call_errors import CallValueError
from .file_details import Details, SignatureDetails
from .run_way import AnyTensor, RunWay
from .turns import Turns


class RunsSubgraphs(Protocol):
    """What a runner needs of its interpreter."""

    _turns: Turns

    def _ready_way(self) -> RunWay:
        """The way in which it runs, decided by now."""

    def _details_of(self, subgraph: int, index: int) -> Details: ...


class SignatureRunner:
    """What `Interpreter.get_signature_runner` gives: a function of arrays by name.

        run = interpreter.get_signature_runner("serving_default")
        result = run(image=pixels)["mask"]

    Inputs get the shapes of what is given. Other signatures of the model go on with the same variables.
    """

    def __init__(self, interpreter: RunsSubgraphs, signature_key: str, signature: SignatureDetails) -> None:
        self._interpreter, self._signature, self._signature_key = interpreter, signature, signature_key

    def __call__(self, **kwargs: Any) -> dict[str, AnyTensor]:
        """Outputs by name, as copies, for arrays by name, of the inputs' types and in any shape that the model takes.

        Raises ValueError for names, numbers of inputs and types that are not the signature's, RuntimeError for shapes
        that the model does not take.
        """
        known = self._signature.inputs
        if len(kwargs) != len(known) or kwargs.keys() - known.keys():
            wrong = sorted(kwargs.keys() - known.keys())
            named = f"Invalid Input name ({wrong[0]}) for SignatureDef{meant(wrong[0], known)}" if wrong else ""
            count = f"expected {len(known)} vs provided {len(kwargs)}"
            raise CallValueError(
                f"{named or f'Invalid number of inputs provided for running a SignatureDef, {count}'}: the inputs of "
                f"{self._signature_key!r} are {', '.join(known) or 'none'}"
            )
        with self._interpreter._turns:
            return self._run(kwargs)

    def _run(self, kwargs: Mapping[str, Any]) -> dict[str, AnyTensor]:
        known, subgraph = self._signature.inputs, self._signature.subgraph
        way = self._interpreter._ready_way()
        values = {name: _array(value) for name, value in kwargs.items()}
        for name, value in values.items():
            if way.shape(subgraph, known[name]) != value.shape:
                way.resize(subgraph, known[name], value.shape, False)
        way.allocate(subgraph)
        for name, value in values.items():
            way.set(subgraph, known[name], value)
        way.invoke(subgraph)
        return {name: way.get(subgraph, index) for name, index in self._signature.outputs.items()}

    def get_input_details(self) -> dict[str, Details]:
        """Of each input by name, with the keys of Interpreter.get_input_details()."""
        return self._details(self._signature.inputs)

    def get_output_details(self) -> dict[str, Details]:
        """Of each output by name."""
        return self._details(self._signature.outputs)

    def _details(self, tensors: Mapping[str, int]) -> dict[str, Details]:
        found = self._interpreter._details_of
        return {name: found(self._signature.subgraph, index) for name, index in tensors.items()}


def _array(value: Any) -> AnyTensor:
    """Also of texts, which are numbers for nobody."""
    return np.asarray(value) if isinstance(value, str | bytes | list | tuple | np.ndarray) else as_array(value)

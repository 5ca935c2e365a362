"""What a program is told of a model that is made ready to run: what runs where, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ..base.wording import counted


@dataclass(frozen=True)
class InterpreterReport:
    """What runs where, and why. As text it is a few lines for people.

    backend: "gl", "native" or "tflite"; "" before allocate_tensors. renderer: the GPU, the CPU's instructions, or the
    package that computes. operators: of the subgraph that invoke() runs. places: how many of them run where, in words.
    threads: of the CPU. reasons: why the model runs so, a line each. times_ms: what was measured or estimated, by way.
    """

    backend: str
    renderer: str = ""
    operators: int = 0
    places: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    threads: int = 0
    precision: str = "fp32"
    exact: bool = True
    reasons: tuple[str, ...] = ()
    times_ms: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data, such as JSON takes."""
        return {**vars(self), "places": dict(self.places), "reasons": [*self.reasons], "times_ms": dict(self.times_ms)}

    def __str__(self) -> str:
        if not self.backend:
            return "\n".join(("not decided before allocate_tensors()", *self.reasons))
        where = ", ".join(f"{number} {place}" for place, number in self.places.items())
        lines = [f"{self.backend}: {self.renderer}", f"{counted(self.operators, 'operator')}: {where}"]
        lines.append(f"{counted(self.threads, 'thread')}, {self.precision}")
        lines += [f"{way}: {time_ms:.3f} ms" for way, time_ms in self.times_ms.items()]
        return "\n".join((*lines, *self.reasons))


def places_left(operators: int) -> dict[str, int]:
    """Where the rest of operators run, if there is a rest."""
    return {"in TensorFlow Lite": operators} if operators else {}

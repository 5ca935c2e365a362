"""A graph of convolutions goes in; what runs it again and again comes out: TensorFlow Lite with XNNPACK, or a rival.

Rivals are packages of the bench alone, never dependencies. Each is used twice: with its input in the layout that it
computes in, packed beforehand, and from planes of channels, which it packs and pads by itself.
"""

import contextlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from types import MappingProxyType
from typing import Literal, Protocol

import numpy as np

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.wording import meant
from texelflow.gpu_delegate.cpu.interpreter_module import load_interpreter_module
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.packing import Float32Array
from texelflow.gpu_delegate.reading.model_file import printable_name
from texelflow.gpu_delegate.reading.writer import write_model

from .retinaface_layers import from_channel_planes

InputForm = Literal["packed", "planes", "bytes"]  # bytes of RGBA for ours alone
ContenderMaker = Callable[[Graph, InputForm, int], "Contender"]  # of a graph, for so many threads

PACKAGES = MappingProxyType({"xnnpack": "", "ncnn": "ncnn", "mnn": "MNN"})  # what pip installs; XNNPACK is always there
MODULES = MappingProxyType({"ncnn": "ncnn", "mnn": "MNN"})


class Contender(Protocol):
    """A network that is ready to run; it holds its input and its output."""

    def run(self) -> object:
        """One run, nothing else."""

    def write(self, bhwc: Float32Array) -> None:
        """The input of the runs from now on."""

    def read(self) -> Float32Array:
        """The output of the last input, BHWC."""


class XnnpackContender:
    """TensorFlow Lite's interpreter, whose convolutions XNNPACK computes."""

    def __init__(self, graph: Graph, form: InputForm, threads: int) -> None:
        self._is_planar = form == "planes"
        model = write_model(from_channel_planes(graph) if self._is_planar else graph)
        interpreter = load_interpreter_module().Interpreter(model_content=model, num_threads=threads)
        interpreter.allocate_tensors()
        self._interpreter = interpreter

    def run(self) -> object:
        """See Contender."""
        return self._interpreter.invoke()

    def write(self, bhwc: Float32Array) -> None:
        """See Contender."""
        values = np.ascontiguousarray(bhwc.transpose(0, 3, 1, 2)) if self._is_planar else bhwc
        self._interpreter.set_tensor(self._interpreter.get_input_details()[0]["index"], values)

    def read(self) -> Float32Array:
        """See Contender."""
        self.run()
        found: Float32Array = self._interpreter.get_tensor(self._interpreter.get_output_details()[0]["index"])
        return found


def open_xnnpack(graph: Graph, form: InputForm, threads: int) -> Contender:
    """Raises DeviceError where there is no TensorFlow Lite."""
    return XnnpackContender(graph, form, threads)


def rival_maker(rival: str) -> tuple[ContenderMaker, str]:
    """What opens a rival that is installed, and which version it is."""
    if rival == "ncnn":
        from .layer_ncnn import open_ncnn

        return open_ncnn, f"ncnn {version('ncnn')}"
    if rival == "mnn":
        from .layer_mnn import open_mnn

        return open_mnn, f"MNN {version('MNN')}"
    package = load_interpreter_module().__name__.partition(".")[0].replace("_", "-")
    return open_xnnpack, f"XNNPACK of {package} {version(package)}"


def parse_rivals(text: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The rivals that are asked for, all of them for None, and those of them that are not installed.

    XNNPACK is always the first, since outputs are compared with its. Raises UsageError for a name that is none, and for
    one that was asked for by name and is not installed.
    """
    names = tuple(PACKAGES) if text is None else tuple(dict.fromkeys(("xnnpack", *text.split(","))))
    for name in names:
        if name not in PACKAGES:
            known = f"{', '.join(PACKAGES)}, with commas between them, are needed{meant(name, PACKAGES)}"
            raise UsageError(f"--against {printable_name(text)}: {known}")
    lacking = tuple(name for name in names if name in MODULES and importlib.util.find_spec(MODULES[name]) is None)
    if lacking and text is not None:
        raise UsageError(f"--against {text}: {how_to_install(lacking)}")
    return tuple(name for name in names if name not in lacking), lacking


def how_to_install(rivals: tuple[str, ...]) -> str:
    """One line about rivals that are not there."""
    are = "is" if len(rivals) == 1 else "are"
    return f"{' and '.join(rivals)} {are} not installed: pip install {' '.join(PACKAGES[name] for name in rivals)}"


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Within it nothing reaches standard output, not what compiled modules write there either."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)

"""Which rivals of our code for the CPU are installed, which are asked for, and what opens each of them.

Rivals are packages of this tool alone, never dependencies of the program.
"""

import importlib.util
from collections.abc import Callable
from importlib.metadata import version
from types import MappingProxyType

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.wording import meant
from texelflow.gpu_delegate.cpu.interpreter_module import load_interpreter_module
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.reading.model_file import printable_name

from .contenders import Contender, InputForm, open_xnnpack
from .layer_mnn import open_mnn
from .layer_ncnn import open_ncnn

ContenderMaker = Callable[[Graph, InputForm, int], Contender]  # of a graph, for so many threads
PACKAGES = MappingProxyType({"xnnpack": "", "ncnn": "ncnn", "mnn": "MNN"})  # what pip installs; XNNPACK is always there
MODULES = MappingProxyType({"ncnn": "ncnn", "mnn": "MNN"})


def rival_maker(rival: str) -> tuple[ContenderMaker, str]:
    """What opens a rival that is installed, and which version it is."""
    if rival == "ncnn":
        return open_ncnn, f"ncnn {version('ncnn')}"
    if rival == "mnn":
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

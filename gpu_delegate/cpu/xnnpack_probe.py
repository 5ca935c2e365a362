"""The child process of xnnpack.py: checks that a runtime's XNNPACK behaves as expected.

This is the child's side of xnnpack.py: a wrong struct may crash it.
"""

import gc
import importlib
import json
import sys
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import numpy as np

from ..model.graph import Activated, Graph, Node, Tensor
from ..reading.writer import write_model
from .xnnpack import XnnpackCache, XnnpackLibrary


def main() -> None:
    """Print a JSON list of differences for the module that is named on the command line."""
    print(json.dumps([*differences_of(importlib.import_module(sys.argv[1]))]), flush=True)


def differences_of(module: Any) -> Iterator[str]:
    """Make, run and free interpreters that share weights, finalized in both ways."""
    library, model = XnnpackLibrary(module), write_model(_graph())
    options = library.default_options()
    if options.weights_cache or not 0 <= options.num_threads <= 1:
        yield "its options have other fields"
        return
    wanted = _run(module.Interpreter(model_content=model))
    for is_hard in (False, True):
        cache = XnnpackCache(library, len(model))
        made = [_shared(module, model, cache)]
        cache.finalize(is_hard)
        if is_hard:
            yield from _further(module, model, cache)
        else:
            made.append(_shared(module, model, cache))
        if not all(np.array_equal(_run(each), wanted) for each in made):
            yield "results differ"
        made.clear()
        gc.collect()
        cache.close()


def _further(module: Any, model: bytes, cache: XnnpackCache) -> Iterator[str]:
    try:
        _shared(module, model, cache)
    except RuntimeError:
        return
    yield "it takes instances after hard finalization"


def _shared(module: Any, model: bytes, cache: XnnpackCache) -> Any:
    interpreter = module.Interpreter(model_content=model, experimental_delegates=[cache.delegate(1)])
    interpreter.allocate_tensors()
    return interpreter


def _run(interpreter: Any) -> Any:
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.arange(12, dtype=np.float32).reshape(1, 12))
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def _graph() -> Graph:
    weights = np.random.default_rng(0).normal(0, 1, (8, 12)).astype(np.float32)
    tensors = {
        0: Tensor(0, "", (1, 12)), 1: Tensor(1, "", weights.shape, data=weights),
        2: Tensor(2, "", (8,), data=np.ones(8, np.float32)), 3: Tensor(3, "", (1, 8)),
    }  # fmt: skip
    node = Node("FULLY_CONNECTED", (0, 1, 2), (3,), Activated(), index=0)
    return Graph("probe", MappingProxyType(tensors), (node,), (0,), (3,))

"""Makes interpreters that share XNNPACK's packed weights.

Where the runtime cannot share them, it is one that packs its own, and a line says why.
"""

import hashlib
from contextlib import ExitStack
from typing import Any

from ..base.errors import ModelError
from ..model.graph import Graph
from ..programs.model_sharing import ModelSharing
from ..programs.shared_models import CacheState
from .interpreter import InterpreterOptions, LocalInterpreter
from .interpreter_module import load_interpreter_module
from .xnnpack import XnnpackCache, XnnpackLibrary, why_not_shared


def shared_interpreter(
    graph: Graph, model: bytes, options: InterpreterOptions, weights_cache: ModelSharing
) -> tuple[LocalInterpreter, str]:
    """The interpreter, and why it shares no packed weights, or "". `model` is written from the graph.

    Raises UsageError for what the cache does not take, and as LocalInterpreter.
    """
    model = weights_cache.shared(graph, {"backend": "TensorFlow Lite"}, lambda: model)
    module = load_interpreter_module()
    lack = why_not_shared(module.__name__)
    if not lack:
        try:
            return _sharing(module, model, options, weights_cache), ""
        except ModelError:  # without a cache TensorFlow Lite leaves it out then, too
            lack = f"XNNPACK does not take {graph.name}: there are no packed weights to be shared"
    return LocalInterpreter(model, options), lack


def _sharing(module: Any, model: bytes, options: InterpreterOptions, weights_cache: ModelSharing) -> LocalInterpreter:
    """Raises ModelError where XNNPACK does not take the model."""
    with ExitStack() as stack:
        cache = stack.enter_context(
            weights_cache.held(
                ("XNNPACK", hashlib.sha256(model).digest()),
                lambda: XnnpackCache(XnnpackLibrary(module), len(model)),
                XnnpackCache.close,
                lambda made, state: made.finalize(state is CacheState.HARD),
            )
        )
        with cache.lock:
            delegate = cache.delegate(options.threads)
            delegate.when_freed(stack.pop_all().close)
            interpreter = LocalInterpreter(model, options, sharing=delegate)
            if weights_cache.state is not CacheState.OPEN:
                cache.finalize(is_hard=False)
        return interpreter

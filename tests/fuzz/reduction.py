"""Makes a failing model smaller, as long as it fails.

Ops are taken away one by one: what they wrote becomes an input, and what nothing needs any more goes as well.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.model_files.model_builder import ModelBuilder


def reduced(model: ModelBuilder, fails: Callable[[ModelBuilder], bool]) -> ModelBuilder:
    """The smallest that is found; the model itself where nothing can be left out."""
    found = True
    while found:
        found = False
        for smaller in _smaller(model):
            if fails(smaller):
                model, found = smaller, True
                break
    return model


def _smaller(model: ModelBuilder) -> Iterator[ModelBuilder]:
    """Models with fewer outputs or ops, those that lack most first."""
    if len(model.outputs) > 1:
        yield from (_needed(model, [output], set()) for output in model.outputs)
    for number, op in reversed(list(enumerate(model.ops))):
        left = [output for output in model.outputs if output not in op.outputs]
        before = [i for i in op.inputs if i >= 0 and model.tensors[i].data is None and i not in model.inputs]
        if left or before:
            yield _needed(model, [*left, *([] if left else dict.fromkeys(before))], {number})
    for number, op in enumerate(model.ops):
        if not set(op.outputs) & set(model.outputs):
            yield _needed(model, model.outputs, {number})


def _needed(model: ModelBuilder, outputs: list[int], gone: set[int]) -> ModelBuilder:
    """What outputs need, without some ops."""
    needed, kept = set(outputs), []
    for number, op in reversed(list(enumerate(model.ops))):
        if number not in gone and (not op.outputs or needed & set(op.outputs)):  # or it changes a state
            needed |= set(op.inputs)
            kept.append(op)
    written = {tensor for op in kept for tensor in op.outputs}
    inputs = [i for i in sorted(needed) if i >= 0 and i not in written and model.tensors[i].data is None]
    tensors = [replace(tensor) for tensor in model.tensors]
    return ModelBuilder(tensors, kept[::-1], inputs, [i for i in outputs if i in written], further=model.further)

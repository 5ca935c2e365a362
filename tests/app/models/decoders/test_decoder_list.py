"""All decoders: asked about any shapes, in whatever order, and each in its place."""

import re
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from texelflow.app.models.decoders.decoder_list import DECODERS
from texelflow.app.models.decoders.decoding import ModelFacts
from texelflow.app.models.metadata import ModelMetadata
from texelflow.app.models.spec import FINDING_TASKS
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.model.graph import Graph, Tensor

KNOWN = st.sampled_from(
    ((1, 896, 16), (1, 896, 1), (1, 1404), (1, 63), (1, 195), (1, 213), (1, 15), (1, 56, 84), (1, 84, 6), (1, 252, 6),
     (1, 1, 17, 3), (1, 6, 56), (1, 9, 9, 17), (1, 9, 9, 34), (1, 100, 4), (1, 100), (1,), (), (1, 1917, 4), (1, 1000),
     (1, 64, 64, 39), (1, 1, 1, 4), (1, 300, 6), (1, 100, 7))
)  # fmt: skip
LENGTHS = st.sampled_from((-1, 0, 1, 2, 4, 17, 1 << 31, 1 << 62))
SHAPES = st.one_of(KNOWN, st.lists(LENGTHS, max_size=5).map(tuple))
SIDES = st.sampled_from((1, 2, 64, 128, 300, 1 << 15))


def facts_of(shapes: Sequence[tuple[int, ...]], size: tuple[int, int]) -> ModelFacts:
    picture = Tensor(0, "picture", (1, size[1], size[0], 3))
    tensors = {0: picture} | {n: Tensor(n, f"hourglass {n}", shape) for n, shape in enumerate(shapes, 1)}
    graph = Graph("net", tensors, (), (0,), tuple(range(1, 1 + len(shapes))))
    return ModelFacts("net", graph, None, ModelMetadata(), size)


@given(st.lists(SHAPES, min_size=1, max_size=7), SIDES, SIDES)
@settings(max_examples=40, deadline=None)
def test_any_shapes_are_known_or_not(shapes: list[tuple[int, ...]], width: int, height: int) -> None:
    for decoder in DECODERS:
        try:
            found = decoder.decoding(facts_of(shapes, (width, height)))
        except UsageError:
            assert decoder is DECODERS[-1]
            continue
        if found:
            assert found.why
            assert {*found.reads} <= {*range(len(shapes))}
            assert all(shapes[place] == () or min(shapes[place]) > 0 for place in found.reads)


def test_each_is_one_of_its_kind() -> None:
    assert len({decoder.name for decoder in DECODERS}) == len(DECODERS)
    assert {decoder.task for decoder in DECODERS} == {*FINDING_TASKS}


def test_the_document_has_them_in_their_order() -> None:
    said = (Path(__file__).parents[4] / "docs" / "decoders.md").read_text().partition("\n## ")[0]
    rows = [line.split(" | ")[0] for line in said.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`([a-z-]+)`", row)]
    assert named == [decoder.name for decoder in DECODERS]

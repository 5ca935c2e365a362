"""Settings as a person may have them, for property tests."""

from typing import Any

from hypothesis import strategies as st

from texelflow.app.settings.gesture_actions import GESTURE_ACTIONS
from texelflow.app.settings.settings import MOST_CAMERAS, Settings, Spec, specs, value_of
from texelflow.app.tracking.gesture_names import GESTURES

_LETTERS = st.characters(codec="utf-8", categories=("L", "M", "N", "P", "S"))
_TEXTS = st.text(st.one_of(_LETTERS, st.sampled_from("\"'#\\ [=]")), max_size=20)


def values_of(spec: Spec) -> st.SearchStrategy[Any]:
    """Values that a setting may have."""
    if spec.kind == "bool":
        return st.booleans()
    if spec.kind == "choice":
        return st.sampled_from(spec.choices)
    if spec.kind == "size":
        return st.tuples(st.integers(1, 16384), st.integers(1, 16384)).map(lambda size: f"{size[0]}x{size[1]}")
    if spec.kind == "range":
        ranges = st.tuples(st.integers(-255, 0), st.integers(1, 255)).map(lambda pair: f"{pair[0]},{pair[1]}")
        return st.one_of(st.just(""), ranges)
    if spec.kind == "point":
        return st.tuples(st.integers(0, 100), st.integers(0, 100)).map(lambda p: f"{p[0] / 100},{p[1] / 100}")
    if spec.kind == "gestures":
        pairs = st.dictionaries(st.sampled_from(GESTURES), st.sampled_from([*GESTURE_ACTIONS]), max_size=3)
        return pairs.map(lambda found: ",".join(f"{gesture}={action}" for gesture, action in found.items()))
    if spec.kind == "faces":
        return st.lists(st.integers(1, 99), max_size=3).map(lambda found: ",".join(map(str, found)))
    if spec.kind in ("int", "float"):
        numbers: st.SearchStrategy[Any] = (
            st.integers(int(spec.low), int(spec.high)) if spec.kind == "int" else st.floats(spec.low, spec.high)
        )
        return st.one_of(numbers, st.just(0 if spec.kind == "int" else 0.0)) if spec.zero else numbers
    texts = _TEXTS.filter(lambda text: not text.startswith("~/"))  # which stands for another text
    if spec.kind == "texts":
        return st.one_of(texts, st.lists(texts.filter(bool), min_size=2, max_size=MOST_CAMERAS).map(tuple))
    return texts


def valid_values_of(spec: Spec) -> st.SearchStrategy[Any]:
    """Those that it may have, and keeps as they are."""
    return values_of(spec).filter(lambda value: value_of(spec, value) == value)


any_settings = st.builds(Settings, **{spec.name: valid_values_of(spec) for spec in specs()})

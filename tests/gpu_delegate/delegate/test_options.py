"""The delegate's options: what follows from them, and one line of error for each that is wrong."""

import dataclasses
import itertools
import math
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.delegate.delegate_options import GpuDelegateOptions, InferencePriority

DOCUMENT = Path(__file__).parents[3] / "docs" / "delegate.md"
P, L, M = "max_precision", "min_latency", "min_memory_usage"


def options(**given: Any) -> GpuDelegateOptions:
    return GpuDelegateOptions(**given)


def priorities(*words: str) -> GpuDelegateOptions:
    return options(**{f"inference_priority{place}": word for place, word in enumerate(words, 1)})


def test_defaults() -> None:
    found = options()
    assert (found.precision, found.priorities, found.compiling.compile_budget_s) == ("fp32", (P, L, M), 10.0)
    assert found.max_delegated_partitions is None


@pytest.mark.parametrize(
    ("given", "filled", "precision"),
    [
        ([P], (P, L, M), "fp32"),
        ([L], (L, M, P), "fp16"),
        ([M], (M, P, L), "fp16"),
        ([P, M], (P, M, L), "fp32"),
        ([L, P], (L, P, M), "fp16"),
        ([M, L, P], (M, L, P), "fp16"),
        ([P, M, L], (P, M, L), "fp32"),
    ],
)
def test_auto_is_filled_in_as_by_the_original(given: list[str], filled: tuple[str, ...], precision: str) -> None:
    found = priorities(*given)
    assert found.priorities == filled
    assert found.precision == precision


def test_all_combinations_are_right_or_refused() -> None:
    """Right: the first is chosen, nothing follows an "auto", none comes twice."""
    words = get_args(InferencePriority)
    right = 0
    for chosen in itertools.product(words, repeat=3):
        bare = [word for word in chosen if word != "auto"]
        valid = chosen[0] != "auto" and not (chosen[1] == "auto" != chosen[2]) and len(set(bare)) == len(bare)
        if valid:
            assert sorted(priorities(*chosen).priorities) == sorted((P, L, M))
            assert priorities(*chosen).priorities[: len(bare)] == tuple(bare)
        else:
            with pytest.raises(UsageError, match="inference_priority"):
                priorities(*chosen)
        right += valid
    assert right == 3 + 6 + 6


def test_precision_loss_comes_before_priorities() -> None:
    found = options(is_precision_loss_allowed=True)
    assert (found.precision, found.priorities) == ("fp16", (L, M, P))


@pytest.mark.parametrize(("word", "budget_s"), [("fast_single_answer", 3), ("balanced", 6), ("sustained_speed", 12)])
def test_what_runs_for_long_may_compile_for_long(word: str, budget_s: float) -> None:
    assert options(inference_preference=word, compile_budget_s=3).compiling.compile_budget_s == budget_s


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"model": 5}, "model is a path or the bytes of a .tflite file, not int"),
        ({"strict": 1}, "strict is True or False, not 1"),
        ({"quiet": "no"}, "quiet is True or False, not 'no'"),
        ({"is_precision_loss_allowed": -1}, "is_precision_loss_allowed is True or False, not -1"),
        (
            {"inference_preference": "fast"},
            "inference_preference is one of 'fast_single_answer', 'sustained_speed', 'balanced', not 'fast'",
        ),
        (
            {"inference_priority1": "auto"},
            "inference_priority1 is one of 'max_precision', 'min_latency', 'min_memory_usage', not 'auto'",
        ),
        ({"inference_priority3": "min_latency"}, "inference_priority3 is 'auto' where inference_priority2 is, not"),
        ({"inference_priority2": P}, "each inference_priority is another one, not 'max_precision', 'max_precision'"),
        ({"inference_priority2": []}, "inference_priority2 is one of 'auto', "),
        ({"wait_type": None}, "wait_type is one of 'passive', 'active', 'do-not-wait', 'aggressive', not None"),
        ({"experimental_flags": "enable_quant"}, "experimental_flags is a tuple of words, such as"),
        ({"experimental_flags": 1}, "experimental_flags is a tuple of words, such as"),
        (
            {"experimental_flags": ["cl_only"]},
            "each of experimental_flags is one of 'enable_quant', 'gl_only', 'enable_serialization', not 'cl_only'",
        ),
        ({"serialization_dir": b"cache"}, "serialization_dir is the path of a directory, not bytes"),
        ({"model_token": ""}, "model_token is part of a file's name, 1 to 100 printable characters without / and"),
        ({"model_token": "../a"}, "model_token is part of a file's name, 1 to 100 printable characters without / and"),
        ({"model_token": "a\nb"}, "model_token is part of a file's name, 1 to 100 printable characters"),
        ({"model_token": "a\u202eb"}, "model_token is part of a file's name, 1 to 100 printable characters"),
        ({"model_token": 1}, "model_token is part of a file's name, 1 to 100 printable characters without / and"),
        ({"max_delegated_partitions": 0}, "max_delegated_partitions is a whole number from 1 on, or None for all that"),
        ({"max_delegated_partitions": True}, "max_delegated_partitions is a whole number from 1 on"),
        ({"min_nodes_per_partition": -1}, "min_nodes_per_partition is a whole number from 1 on, or None for as many"),
        ({"min_nodes_per_partition": 1.5}, "min_nodes_per_partition is a whole number from 1 on"),
        ({"hybrid": "exact"}, "hybrid is one of 'expanded', 'reference', not 'exact'"),
        ({"compile_budget_s": 0}, "compile_budget_s is a number of seconds above 0, not 0"),
        ({"compile_budget_s": math.nan}, "compile_budget_s is a number of seconds above 0, not nan"),
        ({"compile_budget_s": math.inf}, "compile_budget_s is a number of seconds above 0, not inf"),
        ({"compile_budget_s": "10"}, "compile_budget_s is a number of seconds above 0, not '10'"),
    ],
)
def test_each_wrong_value_has_a_line(given: dict[str, Any], line: str) -> None:
    with pytest.raises(UsageError) as caught:
        options(**given)
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


def test_numbers_of_numpy_are_numbers() -> None:
    assert options(max_delegated_partitions=np.int64(3)).max_delegated_partitions == 3


def test_the_table_of_the_document_has_every_option() -> None:
    """And no others; defaults are those of the code."""
    rows = {}
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 4:
            rows[cells[0].strip("`")] = cells[1].strip("`")
    fields = {each.name: each.default for each in dataclasses.fields(GpuDelegateOptions)}
    every = {**fields, "context": None, "weights_cache": None, "custom_ops": ()}
    assert rows == {name: repr(value).replace("'", '"') for name, value in every.items()}


@pytest.mark.parametrize("name", ["metadata", "preferred_gl_object_type", "dynamic_batch_enabled", "inline_parameters"])
def test_the_document_says_what_stands_for_the_first_delegates_options(name: str) -> None:
    assert f"| `{name}` |" in DOCUMENT.read_text(encoding="utf-8")

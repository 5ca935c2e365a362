"""An op is said once: few files of the engine speak of any of them, and of app/advice only with reason."""

import ast
import inspect
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from texelflow.gpu_delegate.model.graph import Attributes
from texelflow.gpu_delegate.ops.registry import OPS
from texelflow.gpu_delegate.passes.pipeline import PASSES
from texelflow.gpu_delegate.passes.steps import FORMS, SHORT_FORMS

ENGINE = Path(__file__).parents[2] / "gpu_delegate"
ADVICE = ENGINE.parent / "app" / "advice"
MOST_FILES = 2
EXCEPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "RELU": "a code of fused activations, of which TensorFlow Lite's kernels have some, and in a probe of runtimes",
        "RELU6": "a code of fused activations, of which TensorFlow Lite's kernels have some",
        "RELU_N1_TO_1": "a code of fused activations, of which TensorFlow Lite's kernels have some",
        "TANH": "a code of fused activations, which LSTM has",
        **dict.fromkeys(("ADD", "SUB", "MUL", "DIV"), "of which passes make nodes, with functions of two files"),
        "CAST": "the one op that may round integers, and the example of integers comes from one",
        "DEQUANTIZE": "of halves, which models have for every weight: what TensorFlow Lite keeps of them",
        "FULLY_CONNECTED": "what XNNPACK packs, and what tells whether it is there",
    }
)
_WORDS = "kernels.py"  # what else to do in a model that has such a move
ADVICE_ON: Mapping[str, list[str]] = MappingProxyType(
    {op: [_WORDS] for op in ("RESHAPE", "TRANSPOSE", "CONCATENATION", "PAD", "DEPTH_TO_SPACE")}
)


def spoken_of(file: Path, classes: Mapping[str, str]) -> Iterator[str]:
    """The ops of which a file has the name as a string, or the class of attributes that no other op has."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in OPS:
            yield node.value
        name = node.id if isinstance(node, ast.Name) else node.name if isinstance(node, ast.alias) else ""
        if name in classes:
            yield classes[name]


def own_classes() -> Mapping[str, str]:
    """Classes of attributes that one op has, by their names."""
    classes = {name: type(record.example.attributes).__name__ for name, record in OPS.items()}
    of_many = Counter(classes.values())
    return {each: name for name, each in classes.items() if of_many[each] == 1 and each != Attributes.__name__}


def rewriting() -> set[Path]:
    """Files of what rewrites the very ops that it speaks of: passes, and forms of integers."""
    functions: list[Callable[..., Any]] = [*PASSES, *FORMS.values(), *SHORT_FORMS.values()]
    return {Path(inspect.getfile(inspect.unwrap(each))).resolve() for each in functions}


def files_of_ops(folder: Path) -> Mapping[str, set[str]]:
    """The files that speak of each op; those of cases, of what rewrites it and of its second opinion are apart."""
    apart, classes, found = rewriting(), own_classes(), defaultdict[str, set[str]](set)
    for file in folder.rglob("*.py"):
        if file.resolve() not in apart and file.parent.name not in ("cases", "truth"):
            for op in spoken_of(file, classes):
                found[op].add(file.relative_to(folder).as_posix())
    return found


def test_few_files_speak_of_an_op() -> None:
    found = files_of_ops(ENGINE)
    assert all(found[op] for op in OPS), "a record says each op's name"
    many = {op: sorted(files) for op, files in found.items() if len(files) > MOST_FILES}
    assert many.keys() == EXCEPTIONS.keys(), many
    assert len(EXCEPTIONS) <= 15


def test_the_second_opinion_says_each_op_once() -> None:
    found = Counter(op for file in (ENGINE / "truth").glob("*.py") for op in set(spoken_of(file, {})))
    assert set(found.values()) == {1}


def test_advice_asks_the_records_of_ops() -> None:
    """It names those for which it has words of its own, and those that it changes in a model."""
    found = files_of_ops(ADVICE)
    assert {op: sorted(files) for op, files in found.items()} == ADVICE_ON

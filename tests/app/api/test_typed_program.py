"""The program that type checkers read uses every public name, and all that users see of each class."""

import ast
from pathlib import Path

import texelflow
from tests.app.api.test_docstring_examples import SHOWN, members_of

FILE = Path(__file__).with_name("typed_program.py")


def test_it_uses_all_that_there_is() -> None:
    tree = ast.parse(FILE.read_text(encoding="utf-8"))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert {*texelflow.__all__} - used == set()
    members = {f"{name}.{key}": key for name in SHOWN for key in members_of(name)}
    engine_own = {"Tensor.unusable", "Tensor.steps"}
    assert {name for name, key in members.items() if key not in used} <= engine_own

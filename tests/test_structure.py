"""The shape of the source itself: who may import what, that no file grows without end, and where tests lie."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ENGINE = sorted((ROOT / "gpu_delegate").rglob("*.py"))
MODERNGL = {"moderngl", "glcontext"}
MAY_IMPORT_MODERNGL = {"context.py", "runtime.py", "delegate.py"}
MAY_IMPORT_CONTEXT = {"runtime.py", "delegate.py", "watch.py"}
MOST_LINES = 500


def imported(file: Path) -> Iterator[str]:
    """Full names of all modules that a file imports, anywhere in it, and of what it takes from them.

    Those of the repository are its own paths: gpu_delegate.context.Context.
    """
    package = file.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.removeprefix("texelflow.") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*above, *filter(None, [node.module]))).removeprefix("texelflow.")
            yield from (f"{module}.{alias.name}" for alias in node.names)


def top_levels(file: Path) -> set[str]:
    return {name.partition(".")[0] for name in imported(file)}


def test_the_scan_finds_the_engine() -> None:
    names = {file.name for file in ENGINE}
    assert {"context.py", "runtime.py", "passes.py", "convolution.py"} <= names
    context, runtime = (ROOT / "gpu_delegate" / name for name in ("context.py", "runtime.py"))
    assert top_levels(context) & MODERNGL
    assert "gpu_delegate.context.Context" in set(imported(runtime))


def test_engine_imports() -> None:
    """The engine is usable without the program, and plans need no OpenGL."""
    for file in ENGINE:
        tops = top_levels(file)
        assert not tops & {"app", "assets", "tests", "texelflow"}, file
        if file.name not in MAY_IMPORT_MODERNGL:
            assert not tops & MODERNGL, file
        if file.name not in MAY_IMPORT_CONTEXT:
            assert not [name for name in imported(file) if name.startswith("gpu_delegate.context")], file


@pytest.mark.parametrize("folder", ["app", "gpu_delegate", "tests"])
def test_files_stay_short_and_say_what_they_are(folder: str) -> None:
    for file in sorted((ROOT / folder).rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
        assert text.count("\n") <= MOST_LINES, file
        assert ast.get_docstring(tree), file
        for node in ast.walk(tree) if folder != "tests" else ():
            if isinstance(node, ast.ImportFrom) and not node.level:
                own = node.module is not None and node.module.startswith((f"texelflow.{folder}", folder + "."))
                assert not own, f"{file} imports {node.module}, of its own package, by its whole name"


def test_tests_lie_as_the_code_that_they_are_about() -> None:
    """Names of files are unique, so that each can be found by its name alone."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    for file in files:
        assert (ROOT / file.relative_to(ROOT / "tests").parent).is_dir(), f"{file} lies in a folder that no code has"
    assert sorted({file.name for file in files}) == sorted(file.name for file in files)

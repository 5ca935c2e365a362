"""The shape of the source itself: who may import what, that no file grows without end, and where tests lie."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGINE = sorted((ROOT / "gpu_delegate").rglob("*.py"))
MODERNGL = {"moderngl", "glcontext"}
MAY_IMPORT_MODERNGL = {  # where contexts are made, and where a caller's context, textures and buffers come in
    *("context.py", "native.py"),
    *("delegate/delegate.py", "delegate/worker.py", "delegate/gl_objects.py"),
}
MAY_IMPORT_CONTEXT = {
    *("runtime.py", "delegate.py", "program_log.py", "worker.py", "engine.py", "interpreter_child.py"),
    *(
        "gl_buffers.py",
        "gl_store.py",
        "weights_cache.py",
        "context_mark.py",
        "gpu_timer.py",
        "span_clock.py",
        "half_packing.py",
        "store.py",
        "kernel_timer.py",
        "whole_network.py",
    ),
    *("border.py", "repacking.py", "synchronization.py", "tensor_border.py", "texture_passes.py", "gl_objects.py"),
}
MOST_LINES = 500
FLOORS = (  # folders of app/ from the ground up
    ("picture",),
    ("models", "media"),
    ("frame", "capture"),
    ("settings",),
    ("outputs", "overlay"),
    ("window",),
    ("session",),
    ("live", "replay", "advice"),
    ("archive",),
    ("verbs",),
    ("bench",),
)
SAME_PROTOCOL = {
    "main",  # what runs when Python is started with a module
    "Program",  # the public class holds one of the engine's, and does the same on a thread of its own
}


def imported(file: Path) -> Iterator[str]:
    """Full names of all modules that a file imports, anywhere in it, and of what it takes from them.

    Those of the repository are its own paths: gpu_delegate.targets.gl.context.Context.
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
    assert {"context.py", "runtime.py", "pipeline.py", "convolution.py"} <= names
    context, runtime = (ROOT / "gpu_delegate" / name for name in ("context.py", "runtime.py"))
    assert top_levels(context) & MODERNGL
    assert "gpu_delegate.targets.gl.context.Context" in set(imported(runtime))


def public_names(file: Path) -> Iterator[str]:
    """Classes, functions and type aliases at the top level of a file, constants and names with an underscore aside."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        names: list[str] = []
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            written = [target.id for target in targets if isinstance(target, ast.Name)]
            names = [name for name in written if name[0].isupper() and not name.isupper()]
        yield from (name for name in names if not name.startswith("_"))


def test_a_name_has_one_meaning() -> None:
    """Whoever finds a name of the top level anywhere in the program knows what it is."""
    places: dict[str, list[str]] = {}
    for folder in ("app", "gpu_delegate"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for name in public_names(file):
                places.setdefault(name, []).append(str(file.relative_to(ROOT)))
    assert len(places) > 500, "the scan finds the program's names"
    twice = {name: files for name, files in places.items() if len(files) > 1 and name not in SAME_PROTOCOL}
    assert not twice


def floor_of(name: str) -> int | None:
    """How far up a module of the program stands; None for those beside the folders."""
    parts = name.split(".")
    found = [floor for floor, rooms in enumerate(FLOORS) if len(parts) > 1 and parts[0] == "app" and parts[1] in rooms]
    return found[0] if found else None


def test_no_import_runs_upward() -> None:
    """A folder may use itself and those below it; whoever reads one needs to know none above."""
    folders = {path.name for path in (ROOT / "app").iterdir() if (path / "__init__.py").exists()} - {"api"}
    assert {room for rooms in FLOORS for room in rooms} == folders
    for file in sorted((ROOT / "app").rglob("*.py")):
        own = floor_of(".".join(file.relative_to(ROOT).with_suffix("").parts))
        for name in imported(file):
            floor = floor_of(name)
            if own is not None and floor is not None and file.parent.name != name.split(".")[1]:
                assert floor < own, f"{file} imports {name}"


def test_engine_imports() -> None:
    """The engine is usable without the program, and plans need no OpenGL."""
    for file in ENGINE:
        tops = top_levels(file)
        assert not tops & {"app", "assets", "tests", "texelflow"}, file
        assert "llvmlite" not in tops or file.name == "compiler.py", file
        if file.relative_to(ROOT / "gpu_delegate").as_posix() not in MAY_IMPORT_MODERNGL:
            assert not tops & MODERNGL, file
        if file.name not in MAY_IMPORT_CONTEXT:
            assert not [name for name in imported(file) if name.startswith("gpu_delegate.targets.gl.context")], file


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

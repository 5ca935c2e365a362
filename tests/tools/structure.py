"""The order of folders, which file imports which, and a drawing of the layers.

    python -m tests.tools.structure            # each layer with its files, lines, and the layers that it uses
    python -m tests.tools.structure --write    # the drawing in docs/layers.svg

tests/repository/test_structure.py holds the code against LAYERS.
"""

import argparse
import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
DRAWING = ROOT / "docs" / "layers.svg"
# Folders from the ground up: each imports those in lines above its own, and none beside it in its line. Files that lie
# in the folder itself stand above all of them.
LAYERS: Mapping[str, Sequence[Sequence[str]]] = {
    "gpu_delegate": (
        ("base",),
        ("model",),
        ("truth", "custom"),
        ("device",),
        ("code", "shading"),
        ("ops",),
        ("passes",),
        ("reading", "plan"),
        ("kernels",),
        ("targets/glsl",),
        ("targets/llvm",),
        ("targets/gl",),
        ("saving",),
        ("programs",),
        ("cpu",),
        ("tuning",),
        ("delegate", "cases"),
        ("interpreter",),
    ),
    "app": (
        ("picture",),
        ("models", "media"),
        ("tracking",),
        ("frame", "capture"),
        ("settings",),
        ("outputs", "overlay"),
        ("window",),
        ("session",),
        ("live", "replay", "advice"),
        ("archive",),
        ("verbs",),
        ("bench",),
    ),
    "app/archive": (
        ("jobs",),
        ("results",),
        ("inputs",),
        ("staging",),
        ("manifest",),
        ("rendering",),
        ("cluster",),
        ("scheduling",),
        ("progress",),
    ),
    "app/frame": (
        ("stages",),
        ("textures",),
        ("looks",),
        ("inference",),
        ("finding",),
        ("refinement",),
        ("drawing",),
        ("backend_choice",),
    ),
    "app/bench": (
        ("measuring",),
        ("model_times",),
        ("memory_plans",),
        ("quality",),
        ("gpu_report",),
        ("latency",),
    ),
}
_BOX_WIDTH, _STEP, _TOP, _MARGIN = 250, 30, 50, 16  # of the drawing, in pixels


@dataclass(frozen=True)
class Source:
    """What is asked of a file's text.

    imported: full names of all modules that it imports, anywhere in it, and of what it takes from them; those of the
    repository are its own paths: gpu_delegate.targets.gl.context.Context. whole: modules that it imports from by
    names that begin at the top. names: classes, functions and type aliases at its top level, but for those with an
    underscore in front, and for constants.
    """

    imported: tuple[str, ...]
    whole: tuple[str, ...]
    names: tuple[str, ...]


@cache  # several tests ask for those of all files, and reading takes seconds
def source_of(file: Path) -> Source:
    """A file, read."""
    text = file.read_text(encoding="utf-8")
    tree = ast.parse(text)
    found = [node for node in _statements(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    whole = [node.module for node in found if isinstance(node, ast.ImportFrom) and not node.level and node.module]
    package = file.relative_to(ROOT).parent.parts
    names = (name for node in tree.body for name in _named(node) if not name.startswith("_"))
    imports = (name for node in found for name in _imported(node, package))
    return Source(tuple(imports), tuple(whole), tuple(names))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All below a node, however deep: a tenth of what `ast.walk` goes through."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        below = getattr(node, name, ())
        for each in below if isinstance(below, list) else ():  # a conditional expression has one of each
            yield each
            yield from _statements(each)


def imported(file: Path) -> tuple[str, ...]:
    """See Source."""
    return source_of(file).imported


def _named(node: ast.stmt) -> Sequence[str]:
    """What a statement defines, but for constants."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return (node.name,)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    written = [target.id for target in targets if isinstance(target, ast.Name)]
    return [name for name in written if name[0].isupper() and not name.isupper()]


def _imported(node: ast.Import | ast.ImportFrom, package: Sequence[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name.removeprefix("texelflow.") for alias in node.names)
        return
    above = package[: len(package) - node.level + 1] if node.level else ()
    module = ".".join((*above, *filter(None, [node.module]))).removeprefix("texelflow.")
    yield from (f"{module}.{alias.name}" for alias in node.names)


def file_of(name: str) -> Path | None:
    """The file of the repository that a full name is in: a module, or something that it defines."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:count])
        if path.with_suffix(".py").is_file():
            return path.with_suffix(".py")
        if (path / "__init__.py").is_file():
            return path / "__init__.py"
    return None


@cache
def imports_among(top: str) -> Mapping[Path, frozenset[Path]]:
    """By file of a top-level folder, the files of it that it imports, for types and in functions, too."""
    files = [file for file in sorted((ROOT / top).rglob("*.py")) if file.parent.name != "api"]
    found = {file: {file_of(name) for name in imported(file) if name.split(".")[0] == top} for file in files}
    return {file: frozenset(path for path in paths if path and path != file) for file, paths in found.items()}


def layer_of(file: Path, folder: str) -> tuple[int, str] | None:
    """How far up a file stands in a folder of LAYERS, and its layer; None for those elsewhere and beside the layers."""
    if not file.is_relative_to(ROOT / folder):
        return None
    inside = file.relative_to(ROOT / folder).parent.parts
    places = ["/".join(inside[:count]) for count in range(len(inside), 0, -1)]
    for floor, layers in enumerate(LAYERS[folder]):
        if found := [place for place in places if place in layers]:
            return floor, found[0]
    return None


@dataclass(frozen=True)
class Layer:
    """One layer as it is."""

    name: str
    floor: int
    files: int
    lines: int
    uses: tuple[str, ...]  # layers below it, in their order


def layers_in(folder: str) -> list[Layer]:
    """The layers of a folder, from the ground up."""
    uses = imports_among(folder.partition("/")[0])
    found = []
    for floor, names in enumerate(LAYERS[folder]):
        for name in names:
            own = [file for file in uses if layer_of(file, folder) == (floor, name)]
            below = {layer for file in own for other in uses[file] if (layer := layer_of(other, folder))}
            lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in own)
            found.append(Layer(name, floor, len(own), lines, tuple(each for _, each in sorted(below) if each != name)))
    return found


def drawing(folders: Sequence[str]) -> str:
    """SVG with a part for each folder: its layers, the ground at the bottom, and a dot for each that one uses."""
    parts, left, height = list[str](), _MARGIN, 0
    for folder in folders:
        layers = layers_in(folder)
        parts.append(_part(folder, layers, left))
        left += _BOX_WIDTH + (len(layers) + 2) * _STEP
        height = max(height, _TOP + len(layers) * _STEP + _MARGIN)
    style = (
        "text{font:13px sans-serif;fill:#222}.head{font-weight:bold;font-size:18px}.small{font-size:11px;fill:#555}"
        "rect{fill:#eef3f8;stroke:#48698c}circle{fill:#48698c}line{stroke:#d5dde6}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left}" height="{height}" viewBox="0 0 {left} {height}">'
        f'<style>{style}</style><rect width="{left}" height="{height}" style="fill:#fff;stroke:none"/>'
        + "".join(parts)
        + "</svg>\n"
    )


def _part(folder: str, layers: Sequence[Layer], left: int) -> str:
    """Rows from the top layer down, and columns in the same order: all dots are on the right of the diagonal."""
    rows = {layer.name: number for number, layer in enumerate(reversed(layers))}
    text = [f'<text x="{left}" y="32" class="head">{escape(folder)}/</text>']
    first = left + _BOX_WIDTH + _STEP
    for layer in layers:
        row = rows[layer.name]
        y, own = _TOP + row * _STEP, first + row * _STEP
        size = f"{layer.files} files, {layer.lines:,} lines"
        text += [
            f'<line x1="{left + _BOX_WIDTH}" y1="{y + _STEP // 2}" x2="{own}" y2="{y + _STEP // 2}"/>',
            f'<line x1="{own}" y1="{y + _STEP // 2}" x2="{own}" y2="{_TOP}"/>',
            f'<rect x="{left}" y="{y + 2}" width="{_BOX_WIDTH}" height="{_STEP - 4}" rx="3"/>',
            f'<text x="{left + 10}" y="{y + 20}">{escape(layer.name)}</text>',
            f'<text x="{left + _BOX_WIDTH - 10}" y="{y + 20}" text-anchor="end" class="small">{size}</text>',
        ]
        for other in layer.uses:
            x = first + rows[other] * _STEP
            text.append(f'<circle cx="{x}" cy="{y + _STEP // 2}" r="5"/>')
    return "".join(text)


def main(arguments: Sequence[str] | None = None) -> None:
    """The layers of the code from the ground up, and a drawing of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.structure", description=main.__doc__)
    parser.add_argument("--write", action="store_true", help=f"draw them in {DRAWING.relative_to(ROOT)}")
    options = parser.parse_args(arguments)
    for folder in LAYERS:
        print(f"{folder}/")
        for layer in layers_in(folder):
            used = ", ".join(layer.uses) or "nothing"
            print(f"  {layer.floor + 1:2} {layer.name:14} {layer.files:4} files {layer.lines:6,} lines; uses {used}")
    if options.write:
        DRAWING.write_text(drawing(["gpu_delegate", "app"]), encoding="utf-8")


if __name__ == "__main__":
    main()

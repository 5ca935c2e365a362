"""How much code there is: files, lines and tokens of Python and of shaders, folder by folder.

    python -m tests.tools.size            # a table, with the folders below those of the top level
    python -m tests.tools.size --write    # and into CONTRIBUTING.md, between its marks, those of the top level

Lines are all lines, also blank ones and comments; tokens are what Python's tokenizer gives, without comments, line ends
and indentation, so that cramming shows. Tools are what is in tests/ and tests nothing: its packages with commands.
"""

import argparse
import io
import tokenize
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
BEGIN, END = "<!-- size: python -m tests.tools.size --write -->", "<!-- end of size -->"
_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_SHADERS = {".glsl", ".comp", ".frag", ".vert"}
_TOOLS = "tests: tools"


@dataclass(frozen=True)
class Size:
    """Of some files."""

    files: int = 0
    lines: int = 0
    tokens: int = 0

    def __add__(self, other: "Size") -> "Size":
        return Size(self.files + other.files, self.lines + other.lines, self.tokens + other.tokens)


def size_of(file: Path) -> Size:
    """Of one file; shaders have no tokens that Python could count."""
    text = file.read_text(encoding="utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(text).readline) if file.suffix == ".py" else ()
    return Size(1, len(text.splitlines()), sum(token.type not in _LAYOUT for token in tokens))


def folder_of(file: Path) -> tuple[str, str]:
    """The row of the top level that a file counts for, and the folder below it."""
    top, *inside = file.relative_to(ROOT).parent.parts
    is_package = top == "tests" and bool(inside)
    if is_package and (inside[0] == "tools" or (ROOT / top / inside[0] / "__main__.py").exists()):
        return _TOOLS, inside[0]
    return top, "/".join(inside[:2] if inside[:1] == ["targets"] else inside[:1]) or "."


def sizes(tops: Iterable[str] = ("gpu_delegate", "app", "shaders", "tests")) -> dict[tuple[str, str], Size]:
    """By row of the top level and folder below it."""
    found: dict[tuple[str, str], Size] = {}
    for top in tops:
        for file in sorted((ROOT / top).rglob("*")):
            if file.suffix == ".py" or file.suffix in _SHADERS:
                key = folder_of(file)
                found[key] = found.get(key, Size()) + size_of(file)
    return found


def table(rows: Sequence[tuple[str, Size]]) -> str:
    """In Markdown."""
    head = "| folder | files | lines | tokens |\n|---|---|---|---|"
    return "\n".join([head, *(f"| {name} | {s.files:,} | {s.lines:,} | {s.tokens:,} |" for name, s in rows)])


def of_top_level(found: dict[tuple[str, str], Size]) -> list[tuple[str, Size]]:
    """One row for each folder of the top level, and for the tools."""
    tops = dict.fromkeys(top for top, _ in found)
    return [(f"`{top}`", sum((size for (each, _), size in found.items() if each == top), Size())) for top in tops]


def main(arguments: Sequence[str] | None = None) -> None:
    """Files, lines and tokens by folder."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.size", description=main.__doc__)
    parser.add_argument("--write", action="store_true", help="renew the table in CONTRIBUTING.md")
    options = parser.parse_args(arguments)
    found = sizes()
    print(table([(f"{top} {below}", size) for (top, below), size in sorted(found.items())]))
    print(f"\n{table(of_top_level(found))}")
    if options.write:
        document = ROOT / "CONTRIBUTING.md"
        before, _, rest = document.read_text(encoding="utf-8").partition(BEGIN)
        _, _, behind = rest.partition(END)
        document.write_text(f"{before}{BEGIN}\n{table(of_top_level(found))}\n{END}{behind}", encoding="utf-8")


if __name__ == "__main__":
    main()

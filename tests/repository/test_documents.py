"""The documents for those who work on the program: every file and every command that they name exists."""

import re
from pathlib import Path

import pytest
import typer

from texelflow.app.bench_cli import bench

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("CONTRIBUTING.md", "docs/glossary.md")
FOLDERS = "app|assets|docs|examples|gpu_delegate|shaders|tests"
PATH = re.compile(rf"(?<![\w/.-])(?:{FOLDERS})/[\w./-]*|\b[A-Z]+\.md\b|\b(?:Makefile|pyproject\.toml)\b")


def text_of(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_that_is_named_exists(document: str) -> None:
    named = {found.rstrip(".") for found in PATH.findall(text_of(document))}
    assert len(named) > 10, "the pattern finds what is named"
    folder = (ROOT / document).parent
    assert not [path for path in sorted(named) if not ((ROOT / path).exists() or (folder / path).exists())]


def test_every_link_of_the_documents_leads_somewhere() -> None:
    for document in (*DOCUMENTS, "CHANGELOG.md", "README.md", "docs/delegate.md", "docs/archive.md"):
        for link in re.findall(r"\]\(([^)#]+)\)", text_of(document)):
            assert link.startswith("https://") or ((ROOT / document).parent / link).exists(), f"{document}: {link}"


def test_every_target_of_make_exists() -> None:
    targets = re.findall(r"^([\w-]+):", text_of("Makefile"), re.M)
    named = set(re.findall(r"(?:^|`)make ([\w-]+)", text_of("CONTRIBUTING.md"), re.M))
    assert {"setup", "test", "check"} <= named
    assert named <= set(targets)


def modules_named(document: str) -> set[str]:
    """Of the repository, that are to be run: tests.fuzz of `python -m tests.fuzz`."""
    return set(re.findall(r"python -m (tests(?:\.\w+)+)", text_of(document)))


def test_every_module_that_is_to_be_run_exists() -> None:
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "Makefile"]
    named = set[str]().union(*(modules_named(str(document.relative_to(ROOT))) for document in documents))
    assert {"tests.tools.layers", "tests.fuzz"} <= named
    places = {name: ROOT.joinpath(*name.split(".")) for name in named}
    runs = {name: [place / "__main__.py", place.with_suffix(".py")] for name, place in places.items()}
    lacking = [name for name, files in runs.items() if not any(file.exists() for file in files)]
    assert not lacking
    assert all("__main__" in text_of(str(file)) for files in runs.values() for file in files if file.exists())


def test_every_verb_that_is_named_exists() -> None:
    """Of `texelflow bench`, in all documents but the list of changes, which speaks of those that are gone, too."""
    documents = [path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")) if path.name != "CHANGELOG.md"]
    texts = [text_of(str(document.relative_to(ROOT))) for document in documents]
    named = {found for text in texts for found in re.findall(r"(?:texelflow |`)bench ([a-z]+)", text)}
    known = typer.main.get_command(bench).commands  # type: ignore[attr-defined]
    assert {"frame", "gpu", "quality"} <= named
    assert named <= set(known)


def test_nothing_is_installed_by_a_name_that_no_index_has() -> None:
    """The program itself is on none: what it can do without is named by its own package."""
    folders = (ROOT / name for name in ("app", "gpu_delegate", "docs", "assets", "examples"))
    files = [*ROOT.glob("*.md"), *(file for folder in folders for file in folder.rglob("*.*"))]
    texts = {file: file.read_text(encoding="utf-8") for file in files if file.suffix in (".md", ".py", ".service")}
    assert sum("pip install" in text for text in texts.values()) > 5
    assert not [file for file, text in texts.items() if re.search(r"pip install [^`\n]*texelflow", text)]


def test_a_term_is_explained_once() -> None:
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", text_of("docs/glossary.md"), re.M)
    terms = [term.strip() for row in rows if row.strip() not in ("term", "---") for term in row.split(",")]
    assert len(terms) > 50
    assert len(terms) == len(set(terms))

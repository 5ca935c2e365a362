"""The rules on what may be written, on made-up files; and on a real folder of links, where nothing read is lost."""

import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from texelflow.app.files import ENDINGS, Existing, FileKind, Files, Read, Write, look_at, objections, settle
from texelflow.app.media.recorder import write_png
from texelflow.app.names import FileStatus, free_name
from texelflow.gpu_delegate.base.errors import MediaError, UsageError

KINDS = sorted(kind for kind, endings in ENDINGS.items() if endings)  # others may have any
EXISTING: tuple[Existing, ...] = ("kept", "numbered", "renewed")
places = st.tuples(st.integers(0, 3))
names = st.sampled_from(["a.json", "a.png", "a.png.part", "000001.png", "b"])
seens = st.builds(
    FileStatus,
    st.sampled_from(["nothing", "file", "folder", "other"]),
    places,
    places,
    names,
    st.sampled_from(["folder", "missing", "file"]),
    st.booleans(),
    st.sampled_from(["", "000001.png"]),
)


@st.composite
def described(draw: st.DrawFn) -> tuple[Files, dict[Read | Write, FileStatus]]:
    """A run's files, and what the system might say of them."""
    numbers = itertools.count()

    def path(kind: str) -> Path:
        return Path(f"{next(numbers)}{draw(st.sampled_from([*ENDINGS.get(kind, ('',)), '.mp4']))}")  # type: ignore[call-overload]

    reads = tuple(Read("what is read", path("video")) for _ in range(draw(st.integers(0, 3))))
    kinds = draw(st.lists(st.sampled_from([*KINDS, "pictures", "demo", "debug"]), max_size=3))
    existing = st.sampled_from(EXISTING)
    writes = tuple(Write(f"--{number}", path(kind), kind, draw(existing)) for number, kind in enumerate(kinds))
    named: tuple[Read | Write, ...] = (*reads, *writes)
    return Files(reads, writes), {each: draw(seens) for each in named}


@given(described())
def test_what_nothing_speaks_against_destroys_nothing(made: tuple[Files, dict[Read | Write, FileStatus]]) -> None:
    files, seen = made
    against = {objection.line.split(" ")[0]: objection for objection in objections(files, seen)}
    for number, write in enumerate(files.writes):
        what, objection = seen[write], against.get(write.option)
        if objection is None or objection.question:  # with --force
            others: tuple[Read | Write, ...] = (*files.reads, *files.writes[:number])
            for other in others:
                assert seen[other].place != what.place or "other" in (what.form, seen[other].form)
            if ENDINGS.get(write.kind):
                assert write.path.suffix in ENDINGS[write.kind]
                assert what.form == "file" or (what.form == "nothing" and what.above == "folder")
                assert what.writable
        if objection is None and write.existing == "kept":
            assert not what.held
            assert what.form != "file" or write.kind not in ENDINGS
        if objection and objection.question:
            assert write.existing == "kept", "names of the program's own are never asked for"
            assert what.held or what.form == "file"


def test_nothing_speaks_against_names_that_are_free() -> None:
    seen = FileStatus("nothing", (1, 2, "a"), (1, 2), "a")
    for kind in KINDS:
        write = Write("--out", Path(f"a{ENDINGS[kind][-1]}"), kind)
        assert list(objections(Files((), (write,)), {write: seen})) == []


FILES = ("a.json", "b.json", "a.png", "a.png.part", "c.mp4", "pics/000001.png", "pics/a.json")
LINKS = ("l.json", "l.png", "l.mp4", "pics/000002.png", "more")
WRITTEN = (*FILES, *LINKS, "new.json", "new.png", "pics/new.json", "more/new.json", "./pics/../a.json", "pics", "new")


def kind_of(name: str) -> FileKind:
    """What a run would write there."""
    kinds: dict[str, FileKind] = {".json": "log", ".png": "picture", ".mp4": "video"}
    return kinds.get(Path(name).suffix, "pictures")


@contextmanager
def own_folder() -> Iterator[None]:
    """A new one is the current folder."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def make(links: list[tuple[str, str, bool]]) -> None:
    """Files, and links to some of them: name, target, and whether they are hard."""
    for name in FILES:
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(name)
    for link, target, hard in links:
        if not os.path.lexists(link) and hard and Path(target).is_file():
            os.link(target, link)
        elif not os.path.lexists(link):
            os.symlink(Path(target).absolute(), link)


def write_all(write: Write) -> None:
    """As a run does it: pictures beside the file of their name, and everything else through links."""
    if write.kind == "pictures":
        write.path.mkdir(exist_ok=True)
    pictures = [write.path / "000001.png", write.path / "000002.png"]
    for path in pictures if write.kind == "pictures" else [write.path]:
        if path.suffix == ".png":
            with suppress(MediaError):  # a link to a folder has that name
                write_png(path, np.zeros((1, 1), np.uint8))
        else:
            path.write_bytes(b"written")


@example(links=[("pics/000002.png", "a.json", False)], reads=["pics/000002.png"], written=["pics"], force=True)
@example(
    links=[("pics/000002.png", "a.json", False), ("l.json", "pics/000002.png", False)],
    reads=["l.json"],
    written=["pics"],
    force=True,
)
@example(links=[("l.json", "a.png.part", True)], reads=["l.json"], written=["a.png"], force=True)
@settings(max_examples=100, deadline=None)
@given(
    links=st.lists(st.tuples(st.sampled_from(LINKS), st.sampled_from([*FILES, "pics"]), st.booleans()), max_size=4),
    reads=st.lists(st.sampled_from([*FILES, *LINKS]), min_size=1, max_size=3),
    written=st.lists(st.sampled_from(WRITTEN), min_size=1, max_size=3),
    force=st.booleans(),
)
def test_what_is_read_is_there_after_all_that_is_allowed_was_written(
    links: list[tuple[str, str, bool]], reads: list[str], written: list[str], force: bool
) -> None:
    with own_folder():
        make(links)
        there = {path: path.read_bytes() for path in map(Path, reads) if path.is_file()}
        everything = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
        writes = [Write(f"--{number}", Path(name), kind_of(name)) for number, name in enumerate(written)]
        files = Files(tuple(Read("what is read", Path(name)) for name in reads), tuple(writes))
        try:
            settle(files, force)
        except UsageError:
            return
        for write in writes:
            write_all(write)
        kept = there if force else everything
        assert {path: path.read_bytes() for path in kept} == kept
        assert all(write.kind == "pictures" or write.path.read_bytes() != there.get(write.path) for write in writes)


def test_no_name_is_used_twice(tmp_path: Path) -> None:
    assert free_name(tmp_path / "x.mp4") == tmp_path / "x.mp4"
    (tmp_path / "x.mp4").symlink_to("x.mp4")  # a circle
    assert free_name(tmp_path / "x.mp4") == tmp_path / "x-1.mp4"


@pytest.mark.parametrize("name", ["x" * 300 + ".json", "circle.json", "a\0.json"])
def test_names_that_no_file_system_takes_are_those_of_nothing(name: str, tmp_path: Path) -> None:
    (tmp_path / "circle.json").symlink_to("circle.json")
    write = Write("--log", tmp_path / name, "log")
    files = Files((Read("the input itself", tmp_path / name.replace("x", "y")),), (write,))
    assert look_at(files)[write].form == "nothing"

"""What names on the command line mean: real folders and links, lists, patterns, addresses; what is left out is told."""

import functools
import http.server
import io
import os
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app.archive.results.test_result_names import EarlierNames
from tests.helpers.markers import exhaustive
from texelflow.app.archive.inputs.file_patterns import fixed_folder, has_pattern
from texelflow.app.archive.inputs.folder_search import LEADS_OUT
from texelflow.app.archive.inputs.input_listing import InputListing
from texelflow.app.archive.inputs.path_lists import MOST_LINE_BYTES
from texelflow.gpu_delegate.base.errors import UsageError


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(name.encode())


def names_of(listing: InputListing) -> list[str]:
    return [each.name for each in listing]


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder rec with all sorts of things, the output folder among them; it is the current folder."""
    make(tmp_path, "rec/b.mp4", "rec/b.mkv", "rec/B.webm", "rec/a.PNG", "rec/day 1/cam.2/x.mov", "rec/day 1/y.avi")
    make(tmp_path, "rec/.hidden.mp4", "rec/.git/z.mp4", "rec/notes.doc", "rec/out/b.mp4")
    (tmp_path / "rec/day 1/up").symlink_to("..")
    (tmp_path / "rec/again").symlink_to("day 1")
    (tmp_path / "rec/dead.mp4").symlink_to("nowhere")
    os.mkfifo(tmp_path / "rec/pipe.mp4")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_is_searched_in_order_and_what_is_left_out_is_told(archive: Path) -> None:
    listing = InputListing(["rec"], Path("rec/out"))
    assert not listing.is_complete
    found = list(listing)
    assert [each.number for each in found] == list(range(6))
    assert [each.name for each in found] == ["B", "a", "again/cam.2/x", "again/y", "b-2", "b-3"]
    assert found[4].address == str(archive / "rec/b.mkv")
    assert found[4].size_bytes == len(b"rec/b.mkv")
    assert found[4].modified_ns == (archive / "rec/b.mkv").stat().st_mtime_ns
    assert listing.is_complete
    assert listing.left_out() == (
        "left out: hidden 2, links to folders that were searched before 2, links that lead nowhere 1, "
        "no recordings or pictures by their endings 1, in the output folder 1, no regular files 1"
    )
    assert names_of(InputListing(["rec"], Path("rec/out"))) == [each.name for each in found]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("rec/*.mp4", ["b"]), ("rec/**/*.m*", ["again/cam.2/x", "b", "b-2"]), ("rec/d*/y.???", ["day 1/y"]),
        ("rec/day*", ["day 1/cam.2/x", "day 1/y"]), ("rec/*.doc", ["notes.doc"]),
        ("rec/[ab].*", ["a", "b", "b-2"]), ("rec/.g*/*", ["_git/z"]),
        ("**/y.avi", ["rec/again/y"]),
    ],
)  # fmt: skip
def test_patterns_find_what_they_say_below_their_fixed_part(archive: Path, pattern: str, names: list[str]) -> None:
    assert names_of(InputListing([pattern], Path("rec/out"))) == names


def test_a_file_that_has_the_name_of_a_pattern_is_itself(archive: Path) -> None:
    make(archive, "take [1].mp4", "take 1.mp4")
    assert names_of(InputListing(["take [1].mp4"], Path("done"))) == ["take [1]"]


def test_what_is_named_twice_is_taken_once(archive: Path) -> None:
    listing = InputListing(["rec/b.mp4", "rec", str(archive / "rec/day 1/y.avi")], Path("rec/out"))
    assert [Path(each.address).name for each in listing].count("b.mp4") == 1
    assert listing.left["named twice"] == 1


def test_names_of_an_earlier_run_are_kept_although_others_came_before(archive: Path) -> None:
    known = {each.address: each.name for each in InputListing(["rec"], Path("rec/out"))}
    make(archive, "rec/B.mov")
    later = {each.address: each.name for each in InputListing(["rec"], Path("rec/out"), EarlierNames(known))}
    assert known.items() <= later.items()
    assert later[str(archive / "rec/B.mov")] == "B-4"


def test_a_list_has_a_path_a_line_from_its_own_folder_on(archive: Path) -> None:
    lines = "\ufeff# all\nb.mp4\r\n\n  day 1 \nmissing/m.mp4\n../other.mp4\nout/b.mp4\ns9://x/y.mp4\nout\n*.PNG\n"
    (archive / "rec/some.list").write_bytes(lines.encode())
    listing = InputListing(["rec/some.list"], Path("rec/out"))
    found = list(listing)
    other = str(archive / "other")[1:]
    assert [each.name for each in found][-3:] == ["missing/m", other, "a"]
    assert [each.name for each in found][:2] == ["b", "day 1/cam.2/x"]
    assert found[-3].size_bytes is None
    assert listing.left["in the output folder"] == 2, "a file, and the folder itself"
    assert listing.left[LEADS_OUT] == 1, "day 1/up"
    assert listing.problem_count == 1
    assert "rec/some.list, line 8: s9://x/y.mp4: one of http://" in list(listing.not_listed())[-1]


def test_links_that_lead_out_of_a_folder_are_followed_where_somebody_asks(archive: Path) -> None:
    """A folder from elsewhere may not choose files of this machine; whoever names a link itself has chosen."""
    (archive / "home/private").mkdir(parents=True)
    for name in ("home/private/a.mp4", "home/b.mp4", "recordings.mp4"):
        (archive / name).touch()
    shared = archive / "shared"
    (shared / "deep").mkdir(parents=True)
    (shared / "own.mp4").touch()
    for name, target in {
        "out.mp4": "../home/b.mp4", "folder": "../home/private", "absolute": str(archive / "home"), "up": "..",
        "twin": "../shared2", "deep/within.mp4": "../own.mp4", "deep/chain.mp4": "../out.mp4", "itself": ".",
    }.items():  # fmt: skip
        (shared / name).symlink_to(target)
    (archive / "shared2").mkdir()
    (archive / "shared2/c.mp4").touch()
    (archive / "chosen").symlink_to("shared")

    def found(name: str, follow_links: bool) -> tuple[list[str], int]:
        listing = InputListing([name], Path("out"), follow_links=follow_links)
        return [each.name for each in listing], listing.left[LEADS_OUT]

    assert found("shared", False) == (["deep/within", "own"], 6)
    assert found("shared/**/*.mp4", False) == (["deep/within", "own"], 6)
    assert found("chosen", False) == (["deep/within", "own"], 6)
    assert found("shared/out.mp4", False) == (["out"], 0)
    names, left = found("shared", True)
    assert ({"absolute/b", "absolute/private/a", "deep/chain", "out", "twin/c"} <= set(names), left) == (True, 0)
    (archive / "only").mkdir()
    for name in ("x.mp4", "y.mp4"):
        (archive / "only" / name).symlink_to("../home/b.mp4")
    with pytest.raises(UsageError, match=r"no recordings or pictures there; left out: links that lead out .* 2$"):
        InputListing(["only"], Path("out"))


def test_a_link_to_a_result_is_no_input(archive: Path) -> None:
    (archive / "rec/old.mp4").symlink_to("out/b.mp4")
    (archive / "l.txt").write_text("rec/old.mp4\nrec/b.mp4\n")
    listing = InputListing(["l.txt"], Path("rec/out"))
    assert names_of(listing) == ["rec/b"]
    assert "old" not in names_of(InputListing(["rec"], Path("rec/out")))
    with pytest.raises(UsageError, match="in the output folder"):
        InputListing(["rec/old.mp4"], Path("rec/out"))


def test_an_address_of_this_machine_is_a_path(archive: Path) -> None:
    (archive / "rec/some.list").write_text((archive / "rec/day 1/y.avi").as_uri() + "\nfile://elsewhere/y.avi\n")
    named = InputListing([(archive / "rec/b.mp4").as_uri(), "rec/some.list"], Path("done"))
    assert [(each.address, each.name) for each in named] == [
        (str(archive / "rec/b.mp4"), "b"), (str(archive / "rec/day 1/y.avi"), "day 1/y"),
    ]  # fmt: skip
    assert list(named.not_listed()) == [
        "rec/some.list, line 2: cannot open 'file://elsewhere/y.avi': another machine's file"
    ]


def test_a_list_on_standard_input(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = SimpleNamespace(buffer=io.BytesIO(b"rec/b.mp4\nrec/a.PNG\n\xff\n"), closed=False)
    monkeypatch.setattr(sys, "stdin", stdin)
    listing = iter(InputListing(["-"], Path("done")))
    assert [each.name for each in islice(listing, 2)] == ["rec/b", "rec/a"]
    with pytest.raises(UsageError, match="standard input, line 3: not UTF-8"):
        next(listing)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"a.mp4\n\xff\xfe\n", "line 2: not UTF-8"),
        (b"x" * (MOST_LINE_BYTES + 2), f"line 1: longer than {MOST_LINE_BYTES} bytes"),
        (b"a.mp4\nb\0.mp4\n", "line 2: control characters"),
    ],
)
def test_a_bad_list_is_refused_before_anything_is_done(tmp_path: Path, content: bytes, complaint: str) -> None:
    (tmp_path / "l.txt").write_bytes(content)
    with pytest.raises(UsageError, match=complaint):
        InputListing([f"@{tmp_path / 'l.txt'}"], tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("nope.mp4", "nope.mp4: no such file or folder"), ("rec/pipe.mp4", "not a regular file"),
        ("rec/out", "is in the output folder"), ("rec/out/b.mp4", "is in the output folder"),
        ("*.zip", "no recordings or pictures there"), ("@nope.txt", "cannot read the list"),
        ("gs://b/c.mp4", r"gs:// needs gcsfs: pip install gcsfs"), ("zip://a::s3://b", "one of http://"),
        ("sftp://me:secret@host/x.mp4", "a password in an address would stand in the manifest"),
        ("memory://nowhere", "no such file or folder"), ("a\0b.mp4", "no such file or folder"), ("", "no such"),
    ],
)  # fmt: skip
def test_a_name_that_means_nothing_is_refused_in_one_line(archive: Path, name: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as caught:
        InputListing([name], Path("rec/out"))
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_stops_no_other(archive: Path) -> None:
    (archive / "rec/day 1").chmod(0)
    try:
        listing = InputListing(["rec"], Path("rec/out"))
        assert "b" in names_of(listing)
    finally:
        (archive / "rec/day 1").chmod(0o700)
    assert listing.problem_count == 1


def test_a_folder_that_goes_while_it_is_listed_is_told_and_stops_no_other(tmp_path: Path) -> None:
    make(tmp_path, "a/1.mp4", "b/2.mp4", "b/c/3.mp4", "d/4.mp4")
    listing = InputListing([str(tmp_path)], tmp_path / "out")
    names = []
    for each in listing:
        names.append(each.name)
        if each.name == "b/2":
            (tmp_path / "b/c/3.mp4").unlink()
            (tmp_path / "b/c").rmdir()
            (tmp_path / "b/c").write_bytes(b"")
    assert names == ["a/1", "b/2", "d/4"]


def test_what_fsspec_opens_is_searched_as_folders_are(tmp_path: Path) -> None:
    files = fsspec.filesystem("memory")
    for name in (
        "/bucket/a.mp4",
        "/bucket/day/b.mkv",
        "/bucket/day/.c.mp4",
        "/bucket/day/../../up.mp4",
        "/bucket/n.txt",
    ):
        files.pipe(name, b"12345")
    listing = InputListing(["memory://bucket"], Path("out"))
    found = list(listing)
    assert [(each.address, each.name) for each in found][:2] == [
        ("memory://bucket/a.mp4", "a"), ("memory://bucket/day/b.mkv", "day/b"),
    ]  # fmt: skip
    assert found[0].size_bytes == 5
    assert found[0].modified_ns is not None
    assert names_of(InputListing(["memory://bucket/**/*.mkv"], Path("out"))) == ["day/b"]
    assert names_of(InputListing(["memory://bucket/a.mp4"], Path("out"))) == ["a"]
    (tmp_path / "l.txt").write_text("memory://bucket/a.mp4\nmemory://bucket/gone.mp4\nmemory://bucket/day\n")
    listed = [(each.name, each.size_bytes) for each in InputListing([str(tmp_path / "l.txt")], Path("out"))]
    assert listed == [("bucket/a", 5), ("bucket/gone", None), ("bucket/day/b", 5)]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """A folder on a server of this machine, with pages that list it."""
    make(tmp_path, "www/my clip.mp4", "www/sub/a.mkv", "www/sub/page.html", "www/x%2f..%2f..%2fevil.mp4")
    handler = functools.partial(_QuietHandler, directory=str(tmp_path / "www"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def test_pages_of_a_server_are_folders(served: str, tmp_path: Path) -> None:
    found = list(InputListing([f"{served}/"], tmp_path))
    assert {each.name for each in found} == {"my clip", "sub/a", "x%2f..%2f..%2fevil"}
    assert f"{served}/my%20clip.mp4" in [each.address for each in found]
    (tmp_path / "l.txt").write_text(f"{served}/my%20clip.mp4\n{served}/gone.mp4\n".replace("http://", "http://me@"))
    listed = list(InputListing([str(tmp_path / "l.txt")], tmp_path / "out"))
    assert [each.name for each in listed] == ["127.0.0.1/my clip", "127.0.0.1/gone"]
    clip = next(each for each in found if each.name == "my clip")
    assert clip.size_bytes == len("www/my clip.mp4")
    assert clip.modified_ns == int((tmp_path / "www/my clip.mp4").stat().st_mtime) * 10**9
    assert names_of(InputListing([f"{served}/sub/*.mkv"], tmp_path)) == ["a"]
    assert names_of(InputListing([f"{served}/my%20clip.mp4?token=1"], tmp_path)) == ["my clip"]
    with pytest.raises(UsageError, match="no such file or folder"):
        InputListing([f"{served}/missing/"], tmp_path)


def test_a_server_that_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        InputListing(["http://127.0.0.1:9/folder/"], tmp_path)
    assert "\n" not in str(caught.value)


@exhaustive
def test_a_long_list_is_never_held(tmp_path: Path) -> None:
    lines = "".join(f"cam{number % 7}/{number:07d}.mp4\n" for number in range(4_000))
    (tmp_path / "l.txt").write_text(lines)
    listing = InputListing([str(tmp_path / "l.txt")], tmp_path / "out")
    tracemalloc.start()
    count = sum(1 for _ in listing)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 4_000
    assert most / count < 500  # bytes: what is remembered of each is a few numbers


def test_patterns_of_windows_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("texelflow.app.archive.inputs.file_patterns.os", Windows())
    folder, pattern = fixed_folder(r"C:\rec\2024-*\*.mp4")
    assert (folder, pattern.parts) == ("C:/rec", ("2024-*", "*.mp4"))


class Windows:
    """What os has there."""

    sep = "\\"


@given(st.text("ab/*?[].", min_size=1, max_size=20))
def test_any_pattern_has_a_folder_without_one(name: str) -> None:
    if has_pattern(name):
        folder, pattern = fixed_folder(name)
        assert not has_pattern(folder)
        assert pattern.parts
        assert name.startswith(folder)
        for part in ("a", "b.mp4", "."):
            pattern.is_whole(pattern.step(pattern.start, part))

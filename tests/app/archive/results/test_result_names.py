"""Names of results: below the output folder whatever the input is called, writable everywhere, each given once."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from texelflow.app.archive.results.result_names import (
    MOST_NAME_BYTES,
    MOST_PART_BYTES,
    NameBook,
    same_name_key,
    shareable_name,
    without_media_ending,
)

PARTS = ("..", ".", "", "~", "a", "A", "a.mp4", "con", "NUL.x", ".archive", "manifest.jsonl", "\x1b[2J", "\udcff", "é")
MORE_PARTS = ("x" * 400, " ", "a. ", "C:", "\\\\host", "\u202etxt", "000001")
any_text = st.text(st.characters(), max_size=300)
hostile = st.one_of(any_text, st.lists(st.sampled_from(PARTS + MORE_PARTS), max_size=600).map("/".join))


@given(hostile)
@example("../" * 500)
@example("a.mp4.part.jsonl. .")
@example(".png")
def test_a_safe_name_stays_below_its_folder_and_can_be_written(path: str) -> None:
    name = shareable_name(path)
    assert name.isprintable()
    assert len(name.encode()) <= MOST_NAME_BYTES
    assert not set(name) & set('\\:*?"<>|')
    for part in name.split("/"):
        assert part not in ("", ".", "..")
        assert not part.startswith(".")
        assert part == part.strip(" ").rstrip(".")
        assert len(part.encode()) <= MOST_PART_BYTES
        assert not part.lower().endswith((".mp4", ".png", ".jsonl", ".part", "-masks", ".masks"))
    assert shareable_name(name) == name


def test_a_safe_name_is_made_as_a_file(tmp_path: Path) -> None:
    for path in ("é" * 400, "x/" * 600 + "y", "a\0b/c\nd", "../../up", "/root", "con/nul", "a\udcff"):
        place = tmp_path / f"{shareable_name(path)}-1000000-masks.webm.part"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"")
        assert place.resolve().is_relative_to(tmp_path)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("talk.mp4", "talk"), ("a/Talk.MKV", "a/Talk"), ("talk.2024", "talk.2024"), ("a/.mp4", "a/.mp4"),
        ("clip.mp4.png", "clip.mp4"), ("clip", "clip"),
    ],
)  # fmt: skip
def test_endings_of_recordings_and_pictures_are_left_out(path: str, name: str) -> None:
    assert without_media_ending(path) == name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("../../etc/passwd", "etc/passwd"), ("/cam1/x", "cam1/x"), (".archive/x", "_archive/x"), ("...", "input"),
        ("AUX", "_AUX"), ("a.mp4/b", "a_mp4/b"), ("manifest.jsonl", "manifest_jsonl"), ("a\x1b[2Jb", "a_[2Jb"),
    ],
)  # fmt: skip
def test_hostile_names_in_words(path: str, name: str) -> None:
    assert shareable_name(path) == name


colliding = st.sampled_from(["a", "A", "a-2", "a-masks", "é", "e\u0301", "a/b", "a/b/c", "A/B.mp4", "a_b"])


@given(st.lists(st.one_of(hostile, colliding), max_size=60), st.booleans())
def test_no_two_inputs_have_one_result(paths: Sequence[str], of_folders: bool) -> None:
    book = NameBook(None, of_folders)
    names = [book.name_for(f"/{number}", path) for number, path in enumerate(paths)]
    results = [same_name_key(name + added) for name in names for added in ("", "-masks")]
    assert len(results) == len(set(results))
    keys = [same_name_key(name) + "/" for name in names]
    assert not of_folders or not any(one != other and one.startswith(other) for one in keys for other in keys)
    again = NameBook(None, of_folders)
    assert names == [again.name_for(f"/{number}", path) for number, path in enumerate(paths)]


class EarlierNames(dict[str, str]):
    """By address. `of_folders`: results are folders."""

    of_folders = False

    def name_of(self, address: str) -> str | None:
        return self.get(address)

    def has_name(self, name: str) -> bool:
        return same_name_key(name) in map(same_name_key, self.values())

    def has_below(self, folder: str) -> bool:
        return any(same_name_key(name).startswith(f"{same_name_key(folder)}/") for name in self.values())

    def has_folder(self, name: str) -> bool:
        return self.of_folders and self.has_name(name)


class EarlierFolders(EarlierNames):
    """Each of them the name of a folder."""

    of_folders = True


def test_names_that_collide_are_numbered_and_known_ones_are_kept() -> None:
    book = NameBook(EarlierNames({"/r/a.mkv": "a", "/r/evil.mp4": "../../evil"}))
    wanted = ("/r/a.mp4", "/r/A.MOV", "/r/a.mkv", "/r/evil.mp4", "/r/b.mp4", "/r/b-masks.mp4")
    names = [book.name_for(address, address.removeprefix("/r/")) for address in wanted]
    assert names == ["a-2", "A-3", "a", "evil", "b", "b_masks"]


def test_a_folder_is_never_called_as_one_in_which_others_lie() -> None:
    book = NameBook(None, of_folders=True)
    paths = ("a/x.mp4", "a/y.mp4", "a/b/z.mp4", "A.mp4", "a-2.mov", "a/b.mp4", "a/x/1.mp4")
    wanted = ["a/x", "a/y", "a/b/z", "A-2", "a-2-2", "a/b-2", "a_x_1"]
    assert [book.name_for(path, path) for path in paths] == wanted


@pytest.mark.parametrize(
    ("known", "of_folders", "path", "name"),
    [
        (EarlierFolders({"/1/a/b.mp4": "a/b"}), True, "a.mp4", "a-2"),
        (EarlierFolders({"/1/a/b/c.mp4": "a/b/c"}), True, "A.mp4", "A-2"),
        (EarlierFolders({"/1/a/b.mp4": "a/b"}), True, "a/c.mp4", "a/c"),
        (EarlierFolders({"/1/a.mp4": "a"}), True, "a/b/c.mp4", "a_b_c"),
        (EarlierFolders({"/1/a.mp4": "a"}), False, "a/000000.png", "a_000000"),
        (EarlierNames({"/1/a/b.mp4": "a/b"}), True, "a.mp4", "a-2"),
        (EarlierNames({"/1/a/b.mp4": "a/b"}), False, "a.mp4", "a"),
        (EarlierNames({"/1/a.mp4": "a"}), False, "a/b.mp4", "a/b"),
    ],
)
def test_folders_of_an_earlier_run_are_kept(known: EarlierNames, of_folders: bool, path: str, name: str) -> None:
    assert NameBook(known, of_folders).name_for(f"/2/{path}", path) == name


def test_names_of_files_are_given_anew_where_folders_of_that_name_would_lie_in_each_other() -> None:
    files, folders = (kind({"/a.mp4": "a", "/a/b.mp4": "a/b"}) for kind in (EarlierNames, EarlierFolders))
    for known, wanted in ((files, ["a-2", "a/b"]), (folders, ["a-2", "a_b"])):
        book = NameBook(known, of_folders=True)
        assert [book.name_for(address, address[1:]) for address in known] == wanted
    book = NameBook(files)
    assert [book.name_for(address, address[1:]) for address in files] == ["a", "a/b"]


def test_a_name_of_ten_thousand_inputs_is_numbered_in_no_time() -> None:
    book = NameBook()
    names = [book.name_for(str(number), "0001.mp4") for number in range(10_000)]
    assert names[-1] == "0001-10000"
    assert len(json.dumps(names)) > 0

"""Where results go: whatever lies in the folder before, nothing is lost that no line of the manifest gives away."""

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texelflow.app import atomic
from texelflow.app.archive.rendering.placing import PlaceRules, place_results
from texelflow.app.archive.results.result_files import result_digest
from texelflow.gpu_delegate.base.errors import MediaError

NAMES = [f"a{number}{kind}.mp4" for number in ("", "-2", "-3") for kind in ("", ".masks")]
CONTENTS = st.sampled_from([b"new", b"masks", b"old", b"other"])
KINDS = {"out": "", "masks": ".masks"}


def aside(folder: Path, **contents: bytes) -> dict[str, Path]:
    """Results that were written, by kind."""
    folder.mkdir()
    files = {kind: folder / f"{kind}.mp4" for kind in contents}
    for kind, data in contents.items():
        files[kind].write_bytes(data)
    return files


@settings(max_examples=100, deadline=None)
@given(
    before=st.dictionaries(st.sampled_from(NAMES), CONTENTS | st.sampled_from(["folder", "link"])),
    given_away=st.sets(st.sampled_from(NAMES)),
    with_masks=st.booleans(),
)
def test_nothing_is_lost(before: dict[str, bytes | str], given_away: set[str], with_masks: bool) -> None:
    with TemporaryDirectory() as made:
        out, own = Path(made) / "out", dict[str, str]()
        out.mkdir()
        for name, data in before.items():
            if data == "folder":
                (out / name).mkdir()
            elif data == "link":
                (out / name).symlink_to("elsewhere")
            elif isinstance(data, bytes):
                (out / name).write_bytes(data)
                if name in given_away:
                    own[name] = result_digest(out / name) or ""
        contents = {"out": b"new"} | ({"masks": b"masks"} if with_masks else {})
        placed = place_results(out, "a", aside(Path(made) / "work", **contents), PlaceRules(own))
        assert placed.files == {kind: f"{placed.name}{KINDS[kind]}.mp4" for kind in contents}
        for kind, file in placed.files.items():
            assert (out / file).read_bytes() == contents[kind]
            assert placed.file_sha256[kind] == result_digest(out / file)
            assert placed.file_bytes[kind] == len(contents[kind])
        for name, data in before.items():
            path = out / name
            if data == "folder":
                assert path.is_dir()
            elif data == "link":
                assert os.readlink(path) == "elsewhere"
            else:
                assert path.read_bytes() == data or (name in own and name in placed.files.values())
        assert {path.name for path in out.iterdir()} == {*before, *placed.files.values()}


def test_whoever_comes_first_has_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look and the rename somebody else writes there."""
    moved: Callable[[Path, Path], bool] = atomic._moved_to_free

    def late(file: Path, final: Path) -> bool:
        if final.name == "a.mp4" and not final.exists():
            final.write_bytes(b"theirs")
        return moved(file, final)

    monkeypatch.setattr(atomic, "_moved_to_free", late)
    placed = place_results(tmp_path, "a", aside(tmp_path / "work", out=b"new"), PlaceRules({}))
    assert placed.files == {"out": "a-2.mp4"}
    assert (tmp_path / "a.mp4").read_bytes() == b"theirs"


def test_without_hard_links_a_free_name_is_taken_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    assert place_results(tmp_path, "a", aside(tmp_path / "one", out=b"new"), PlaceRules({})).name == "a"
    assert place_results(tmp_path, "a", aside(tmp_path / "two", out=b"newer"), PlaceRules({})).name == "a-2"
    assert (tmp_path / "a.mp4").read_bytes() == b"new"


def test_force_is_for_what_was_there_before_the_run(tmp_path: Path) -> None:
    old = tmp_path / "a.mp4"
    old.write_bytes(b"old")
    began_ns = old.stat().st_ctime_ns + 1
    rules = PlaceRules({}, overwrites=True, began_ns=began_ns)
    assert place_results(tmp_path, "a", aside(tmp_path / "one", out=b"new"), rules).name == "a"
    assert old.read_bytes() == b"new"
    os.chmod(old, 0o600)  # its time of change is now, which is in the run
    assert old.stat().st_ctime_ns >= began_ns
    assert place_results(tmp_path, "a", aside(tmp_path / "two", out=b"newer"), rules).name == "a-2"
    assert old.read_bytes() == b"new"


@pytest.mark.parametrize("overwrites", [False, True])
def test_no_linked_folder_is_followed(tmp_path: Path, overwrites: bool) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    out.mkdir()
    (other / "deep").mkdir(parents=True)
    (other / "a.mp4").write_bytes(b"mine")
    (out / "sub").symlink_to("../other")
    rules = PlaceRules({"sub/a.mp4": result_digest(other / "a.mp4") or ""}, overwrites)
    for number, name in enumerate(("sub/a", "sub/deep/a", "sub/new/a")):
        with pytest.raises(MediaError, match=r"/out/sub' is a link, and results stay in the output folder"):
            place_results(out, name, aside(tmp_path / str(number), out=b"new"), rules)
    assert sorted(path.name for path in other.rglob("*")) == ["a.mp4", "deep"]
    assert (other / "a.mp4").read_bytes() == b"mine"

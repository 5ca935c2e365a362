"""Files and folders take their names in one step, after all of them is on the disk."""

import os
from pathlib import Path

import pytest

from texelflow.app.atomic import publish, sync
from texelflow.gpu_delegate.base.errors import MediaError


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was synced and renamed, in its order; all of it is really done."""
    done: list[str] = []
    fsync, replace, rename = os.fsync, os.replace, os.rename

    def synced(handle: int) -> None:
        done.append(f"sync {Path(os.readlink(f'/proc/self/fd/{handle}')).name}")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", synced)
    for name, move in (("replace", replace), ("rename", rename)):

        def moved(source: Path, target: Path, move: object = move) -> None:
            done.append(f"{source.name} to {target.name}")
            assert callable(move)
            move(source, target)

        monkeypatch.setattr(os, name, moved)
    return done


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, steps: list[str]) -> None:
    aside, final = tmp_path / "aside", tmp_path / "a" / "b" / "final"
    aside.write_text("new")
    publish(aside, final)
    assert steps == ["sync aside", "aside to final", "sync b", "sync a", f"sync {tmp_path.name}"]
    assert final.read_text() == "new"
    assert not aside.exists()


def test_a_file_takes_the_place_of_a_file(tmp_path: Path) -> None:
    aside, final = tmp_path / "aside", tmp_path / "final"
    aside.write_text("new")
    final.write_text("old")
    publish(aside, final)
    assert final.read_text() == "new"
    assert list(tmp_path.iterdir()) == [final]


@pytest.mark.parametrize("taken", [False, True])
def test_a_folder_appears_whole(tmp_path: Path, steps: list[str], taken: bool) -> None:
    aside, final = tmp_path / "aside", tmp_path / "final"
    (aside / "inner").mkdir(parents=True)
    (aside / "inner" / "1.png").write_text("new")
    (aside / "link").symlink_to("nowhere")
    if taken:
        final.mkdir()
        (final / "000002.png").write_text("old")
        (tmp_path / "aside.old").mkdir()  # of a run that was killed amid this
    publish(aside, final)
    moves = ["final to aside.old", "aside to final"] if taken else ["aside to final"]
    assert steps == ["sync 1.png", "sync inner", "sync aside", *moves, f"sync {tmp_path.name}"]
    assert (final / "inner" / "1.png").read_text() == "new"
    assert list(tmp_path.iterdir()) == [final]


def test_what_cannot_be_published_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("file")
    (tmp_path / "folder").mkdir()
    for aside, final in (("none", "new"), ("file", "folder"), ("folder", "file"), ("folder", "file/new")):
        with pytest.raises(MediaError) as caught:
            publish(tmp_path / aside, tmp_path / final)
        assert "\n" not in str(caught.value)
    with pytest.raises(MediaError, match="none' cannot be written"):
        sync(tmp_path / "none")
    assert (tmp_path / "file").read_text() == "file"
    assert (tmp_path / "folder").is_dir()


def test_the_old_folder_comes_back_where_the_new_one_cannot_take_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("aside", "final"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "000001.png").write_text(name)
    rename = os.rename

    def failing(source: Path, target: Path) -> None:
        if source.name == "aside":
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(MediaError, match="No space left"):
        publish(tmp_path / "aside", tmp_path / "final")
    for name in ("aside", "final"):
        assert (tmp_path / name / "000001.png").read_text() == name


@pytest.mark.parametrize("other", ["important.doc", "000002.png/mine", "b/000001.png", "1.png", ".hidden"])
def test_a_folder_with_anything_but_numbered_pictures_is_not_replaced(tmp_path: Path, other: str) -> None:
    aside, final = tmp_path / "aside", tmp_path / "final"
    for path in (aside / "000001.png", final / "000001.png", final / other):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(path))
    with pytest.raises(MediaError, match=f"final' has files that are not its pictures: '{other.partition('/')[0]}'; m"):
        publish(aside, final)
    for path in (aside / "000001.png", final / "000001.png", final / other):
        assert path.read_text() == str(path)
    assert sorted(tmp_path.iterdir()) == [aside, final]


def test_a_link_to_a_folder_is_not_replaced(tmp_path: Path) -> None:
    aside, theirs, final = tmp_path / "aside", tmp_path / "theirs", tmp_path / "final"
    for folder in (aside, theirs):
        folder.mkdir()
        (folder / "000001.png").touch()
    final.symlink_to(theirs)
    with pytest.raises(MediaError, match="final' is no folder of pictures that can be replaced"):
        publish(aside, final)
    assert final.is_symlink()
    assert (theirs / "000001.png").exists()

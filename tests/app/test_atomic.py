"""Files and folders take their names in one step, after all of them is on the disk."""

import os
from pathlib import Path

import pytest

from texelflow.app.atomic import publish, sync
from texelflow.gpu_delegate.errors import MediaError


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
        (final / "2.png").write_text("old")
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
        (tmp_path / name / name).touch()
    rename = os.rename

    def failing(source: Path, target: Path) -> None:
        if source.name == "aside":
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(MediaError, match="No space left"):
        publish(tmp_path / "aside", tmp_path / "final")
    assert (tmp_path / "final" / "final").exists()
    assert (tmp_path / "aside" / "aside").exists()

"""Files written aside: what killed processes left goes, what is somebody else's stays; no lock is waited for long."""

import errno
import fcntl
import os
import time
from pathlib import Path

import numpy as np
import pytest

from texelflow.app import stale_files
from texelflow.app.media.png import write_png
from texelflow.app.outputs.png_files import make_folder
from texelflow.app.stale_files import locked, remove_stale_asides, written_aside

PICTURE = np.zeros((4, 5, 3), np.uint8)
LEFT = ".texelflow-0123456789abcdef.part"


def test_files_of_others_stay_in_a_folder_of_pictures(tmp_path: Path) -> None:
    (tmp_path / "mydir.png.part").mkdir()
    (tmp_path / "mydir.png.part" / "f").write_text("mine")
    for name in ("Xk3f9.png.part", "000001.png.part", ".texelflow-notes.part", "other"):
        (tmp_path / name).write_text("mine")
    (tmp_path / LEFT.replace("0", "f")).symlink_to("other")
    (tmp_path / LEFT.replace("0", "e")).mkdir()
    before = {path.name for path in tmp_path.iterdir()}
    (tmp_path / LEFT).write_bytes(b"half")
    make_folder(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == before
    assert (tmp_path / "mydir.png.part" / "f").read_text() == "mine"


def test_a_picture_touches_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "x.png.part" / "holiday").mkdir(parents=True)
    (tmp_path / "y.png.part").symlink_to("elsewhere")
    (tmp_path / "z.png.part").write_text("mine")
    with (tmp_path / "z.png.part").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for name in ("x.png", "y.png", "z.png"):
            write_png(tmp_path / name, PICTURE)
    assert sorted(os.listdir(tmp_path)) == ["x.png", "x.png.part", "y.png", "y.png.part", "z.png", "z.png.part"]
    assert (tmp_path / "x.png.part" / "holiday").is_dir()
    assert (tmp_path / "z.png.part").read_text() == "mine"


def test_what_is_being_written_stays_and_what_failed_goes(tmp_path: Path) -> None:
    with written_aside(str(tmp_path)) as file:
        for _ in range(2):
            remove_stale_asides(tmp_path)
            assert os.listdir(tmp_path) == [os.path.basename(file.name)]
            file.close()
    assert os.listdir(tmp_path) == []
    with pytest.raises(OSError, match="full"), written_aside(str(tmp_path)):
        raise OSError(errno.ENOSPC, "full")
    assert os.listdir(tmp_path) == []


def test_a_file_that_another_process_took_for_stale_gets_another_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, taken = stale_files._lock, list[str]()

    def late(handle: int, patience_s: float) -> bool:
        if not taken:
            taken.extend(os.listdir(tmp_path))
            (tmp_path / taken[0]).unlink()
        return lock(handle, patience_s)

    monkeypatch.setattr(stale_files, "_lock", late)
    write_png(tmp_path / "a.png", PICTURE)
    assert (len(taken), os.listdir(tmp_path)) == (1, ["a.png"])


def test_a_lock_is_waited_for_as_long_as_that_was_said(tmp_path: Path) -> None:
    began = time.monotonic()
    with locked(tmp_path) as is_locked, pytest.raises(BlockingIOError), locked(tmp_path, 0.2):
        pass
    assert is_locked
    assert time.monotonic() - began >= 0.2

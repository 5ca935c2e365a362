"""The staging folder: a stranger's is refused and kept, no link in it is followed, and what is ours is cleared."""

from pathlib import Path

import pytest

from texelflow.app.archive.manifest.manifest import check_manifest
from texelflow.app.archive.staging.staged_files import clear_staging
from texelflow.gpu_delegate.base.errors import UsageError


@pytest.mark.parametrize("name", ["2019/holiday.mp4", "driver.lock/x", "models/m", "work/notes", "pieces/a.mp4"])
def test_a_staging_folder_of_somebody_else_is_refused_and_kept(tmp_path: Path, name: str) -> None:
    staging = tmp_path / ".archive"
    ours = f"models/{'0' * 64}/m", f"work/piece-{'1' * 24}-3/left/x.mp4", f"seen-{'0' * 16}", "models/tmp0a_bcdef"
    for each in (name, *ours):
        (staging / each).parent.mkdir(parents=True, exist_ok=True)
        (staging / each).write_text("x")
    for resume in (False, True):
        with pytest.raises(UsageError, match=r"has '\.archive/[a-z0-9./]+' in it, and no manifest"):
            check_manifest(tmp_path, resume, force=False)
    check_manifest(tmp_path, resume=False, force=True)
    clear_staging(staging, keeps_pieces=False)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [staging / name]


@pytest.mark.parametrize("name", ["", "models", "pieces", "work", "driver.lock"])
def test_no_link_of_the_staging_folder_is_followed(tmp_path: Path, name: str) -> None:
    victim, out = tmp_path / "victim", tmp_path / "out"
    mine = [f"{'0' * 64}/m", f"models/{'0' * 64}/m", f"{'-'.join(['0' * 24] * 3)}-0-9-0-out.mp4", f"whole-{'0' * 24}/x"]
    for each in mine:
        (victim / each).parent.mkdir(parents=True, exist_ok=True)
        (victim / each).touch()
    before = sorted(victim.rglob("*"))
    link = out / ".archive" / name if name else out / ".archive"
    link.parent.mkdir(parents=True)
    link.symlink_to(victim)
    for resume, force in ((False, False), (True, False), (False, True)):
        with pytest.raises(UsageError, match="is a link, which is not followed"):
            check_manifest(out, resume, force)
    clear_staging(out / ".archive", keeps_pieces=False)
    assert sorted(victim.rglob("*")) == before


def test_pieces_of_inputs_that_failed_are_kept_where_that_is_asked(tmp_path: Path) -> None:
    piece = tmp_path / "pieces" / f"{'-'.join(['0' * 24] * 3)}-0-9-0-out"
    for path in (piece / "000000.png", tmp_path / "driver.lock", tmp_path / "backgrounds" / ("0" * 64) / "b.png"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    clear_staging(tmp_path, keeps_pieces=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["driver.lock", "pieces"]
    assert piece.is_dir()
    clear_staging(tmp_path, keeps_pieces=False)
    assert [path.name for path in tmp_path.iterdir()] == ["driver.lock"]

"""`archive --verify`: a folder is held against its manifest, whoever wrote it; and what a resumed run makes of both."""

import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.app.archive.manifest.test_manifest import DONE, GOOD_RUN, LECTURE, MARK, RUN, long_addresses, written
from tests.helpers.commands import Command, Result
from tests.helpers.markers import one_in
from texelflow.app.archive.jobs.jobs import InputDone
from texelflow.app.archive.manifest.manifest import MANIFEST_NAME
from texelflow.app.archive.manifest.manifest_lines import RecordedResult, manifest_line
from texelflow.app.archive.results.result_files import holds_what_was_made, look_at_result, result_digest
from texelflow.app.archive.results.results import DoneResult, FailedResult
from texelflow.app.cli import main

CONTENT = {"a.mp4": b"picture", "a.masks.mp4": b"masks", "day/b.mp4": b"another"}


def done_of(folder: Path, **files: str) -> InputDone:
    """What a line says of files that are there."""
    stamps = {kind: look_at_result(folder / file) for kind, file in files.items()}
    return replace(
        DONE, files=files,
        file_bytes={kind: stamp.size_bytes for kind, stamp in stamps.items() if stamp},
        file_sha256={kind: result_digest(folder / file) or "" for kind, file in files.items()},
        file_modified_ns={kind: stamp.modified_ns for kind, stamp in stamps.items() if stamp},
    )  # fmt: skip


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A folder of three files, of numbered pictures, and of a manifest that tells of them."""
    out = tmp_path / "out"
    for name, data in (CONTENT | {f"c/{number:06}.png": b"%d" % number for number in range(3)}).items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(data)
    inputs = [replace(LECTURE, address=f"/in/{name}.mp4", name=name) for name in ("a", "day/b", "c", "broken")]
    written(
        out,
        DoneResult(inputs[0], replace(done_of(out, out="a.mp4"), file_sha256={"out": "0" * 64})),  # made anew since
        DoneResult(inputs[0], done_of(out, out="a.mp4", masks="a.masks.mp4")),
        DoneResult(inputs[1], done_of(out, out="day/b.mp4")),
        DoneResult(inputs[2], done_of(out, out="c")),
        FailedResult(inputs[3], "input", "no frames", 2),
        force=True,
    )
    return out


def verified(capsys: pytest.CaptureFixture[str], folder: Path, *more: str) -> Result:
    return Command(capsys)("archive", "--verify", folder, *more)


def test_a_folder_as_it_was_made(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(path for path in archive.rglob("*"))
    result = verified(capsys, archive)
    assert (result.code, result.out, result.err) == (0, "4 of 4 files as the manifest has them, 22 bytes\n", "")
    assert sorted(path for path in archive.rglob("*")) == before
    (archive / "notes.txt").write_text("nobody's business")
    assert verified(capsys, archive).code == 0


def test_the_digest_of_pictures_is_that_of_their_list(archive: Path) -> None:
    lines = [f"{hashlib.sha256(b'%d' % number).hexdigest()}  {number:06}.png\n" for number in range(3)]
    assert result_digest(archive / "c") == hashlib.sha256("".join(lines).encode()).hexdigest()


def test_each_file_that_differs_has_a_line(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (archive / "a.mp4").write_bytes(b"pixture")
    (archive / "a.masks.mp4").write_bytes(b"mask")
    (archive / "day/b.mp4").unlink()
    (archive / "c/000003.png").write_bytes(b"")
    expected = {
        "a.mp4": "differs: other bytes of the same number", "a.masks.mp4": "differs: 4 bytes, not 5",
        "day/b.mp4": "missing", "c": "differs: other bytes of the same number",
    }  # fmt: skip
    result = verified(capsys, archive)
    assert result.code == 1
    assert result.out.splitlines() == [
        *(f"{name}: {fault}" for name, fault in expected.items()), "0 of 4 files as the manifest has them, 22 bytes",
    ]  # fmt: skip
    as_json = verified(capsys, archive, "--json")
    *lines, last = [json.loads(line) for line in as_json.out.splitlines()]
    assert (as_json.code, {line["file"]: line["reason"] for line in lines}) == (1, expected)
    assert {line["event"] for line in lines} == {"differs"}
    assert (last["event"], last["files"], last["differing"], last["ok"]) == ("verified", 4, 4, False)


def test_no_link_is_followed_and_no_device_opened(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (archive / "day").rename(tmp_path / "day")
    (archive / "day").symlink_to(tmp_path / "day")
    (archive / "a.mp4").rename(tmp_path / "a.mp4")
    (archive / "a.mp4").symlink_to(tmp_path / "a.mp4")
    (archive / "a.masks.mp4").unlink()
    os.mkfifo(archive / "a.masks.mp4")
    (archive / "c/000000.png").unlink()
    (archive / "c/000000.png").symlink_to("000001.png")
    result = verified(capsys, archive)
    assert result.code == 1
    assert [line.partition(": ")[2] for line in result.out.splitlines()[:4]] == [
        "differs: a link is in its place", "differs: it is no file, or no folder of numbered pictures alone",
        "differs: a link is in its place", "differs: it is no file, or no folder of numbered pictures alone",
    ]  # fmt: skip


def test_what_has_no_digest_is_not_proved(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = replace(done_of(archive, out="a.mp4"), file_sha256={})
    written(archive, DoneResult(replace(LECTURE, name="a"), done), force=True)
    result = verified(capsys, archive)
    assert (result.code, result.out.partition(", for")[0]) == (1, "a.mp4: unknown: its line has no digest")


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda path: None, "there is no manifest.jsonl in it"),
        (lambda path: path.touch(), "there is no manifest.jsonl in it"),
        (lambda path: path.symlink_to("nowhere"), "there is no manifest.jsonl in it"),
        (lambda path: path.mkdir(), "is not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
        (lambda path: path.symlink_to(path.name), "is not a regular file"),
        (os.mkfifo, "is not a regular file"),
        (lambda path: path.write_bytes(GOOD_RUN[:-1]), "manifest.jsonl has no whole line"),
        (lambda path: path.write_bytes(b'{"image":"a.png"}'), "line 1 is damaged: it does not begin a run"),
        (lambda path: path.write_bytes(b"{}\n"), "line 1 is damaged: it has no 'kind'"),
        (lambda path: path.write_bytes(GOOD_RUN + b"x" * (1 << 21) + b"\n"), "line 2 is damaged: it is longer than"),
    ],
)  # fmt: skip
def test_without_a_manifest_it_is_one_line_and_2(
    tmp_path: Path, make: object, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / MANIFEST_NAME)  # type: ignore[operator]
    assert complaint in verified(capsys, tmp_path).complaint


@one_in(
    2,
    ("arguments", "complaint"),
    [
        (("--verify", "closed/x"), "'closed/x/manifest.jsonl' cannot be read: Permission denied"),
        (("--verify", "out"), "'out/manifest.jsonl' cannot be read: Permission denied"),
        (("p.jpg", "--out", "closed/x"), "'closed/x/manifest.jsonl' cannot be written: Permission denied"),
        (("p.jpg", "--out", "closed/x", "--dry-run"), "'closed/x/manifest.jsonl' cannot be written: Permission denied"),
    ],
)
def test_what_nobody_may_read_is_one_line_and_2(tmp_path: Path, arguments: Sequence[str], complaint: str) -> None:
    (tmp_path / "p.jpg").write_bytes(b"12345")
    (tmp_path / "closed").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / MANIFEST_NAME).write_bytes(GOOD_RUN)
    for name in ("closed", f"out/{MANIFEST_NAME}"):
        (tmp_path / name).chmod(0)
    command = [sys.executable, "-m", "texelflow", "archive", *arguments]
    if os.geteuid() == 0:  # whom nothing is forbidden, but without these
        lacks = "-dac_override,-dac_read_search"
        command = ["setpriv", f"--bounding-set={lacks}", f"--inh-caps={lacks}", *command]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    (tmp_path / "closed").chmod(0o700)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert complaint in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_no_room_for_temporary_files_is_one_line_and_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import resource

    long_addresses(tmp_path, 40)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    try:
        done = verified(capsys, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "the temporary index of" in done.complaint


def test_it_goes_alone(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "looks at that folder alone" in Command(capsys)("archive", "x", "--verify", archive).complaint
    assert "looks at that folder alone" in Command(capsys)("archive", "--out", "x", "--verify", archive).complaint
    assert "Missing argument 'INPUT...'" in Command(capsys)("archive", "--out", "x").complaint


def test_a_resumed_run_reads_where_the_time_proves_nothing(archive: Path) -> None:
    done = done_of(archive, out="a.mp4", masks="a.masks.mp4")
    assert holds_what_was_made(archive, done)
    result = archive / "a.mp4"
    result.write_bytes(b"pixture")
    assert not holds_what_was_made(archive, done), "the size alone is not enough"
    result.write_bytes(b"picture")
    os.utime(result, ns=(1, 1))
    assert holds_what_was_made(archive, done), "a copy has another time"
    result.write_bytes(b"pixture")
    assert holds_what_was_made(archive, replace(done, file_sha256={})), "of an earlier version nobody knows more"
    (archive / "b").symlink_to("day")
    assert holds_what_was_made(archive, done_of(archive, out="day/b.mp4"))
    assert not holds_what_was_made(archive, done_of(archive, out="b/b.mp4")), "it lies behind a link"
    result.unlink()
    assert not holds_what_was_made(archive, replace(done, file_sha256={}))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
HOSTILE = st.sampled_from(
    [
        "../x",
        "/etc/passwd",
        "a/../../x",
        "a\0",
        "a\n",
        "\x1b[2J",
        "\ud800",
        "link/x",
        ".",
        "",
        "//",
        "a//b",
        "C:x",
        "pipe",
    ]
)
FIELDS = ("input", "name", "outputs", "output_bytes", "output_sha256", "output_modified_ns", "bytes", "sha256", "notes")


@pytest.fixture(scope="module")
def trapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a link out of it and a pipe in it."""
    folder = tmp_path_factory.mktemp("trapped")
    (folder / "link").symlink_to("/")
    os.mkfifo(folder / "pipe")
    (folder / "lecture.mp4").write_bytes(b"12345")
    return folder


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(FIELDS),
            JSON | HOSTILE | st.dictionaries(st.sampled_from(["out", "masks", "x"]), HOSTILE | JSON, max_size=3),
            max_size=3,
        ),
        min_size=1,
        max_size=3,
    )
)
def test_a_hostile_manifest_ends_in_one_line_or_in_lines_of_files(
    trapped: Path, changes: list[dict[str, object]]
) -> None:
    good = json.loads(manifest_line(RecordedResult(MARK, DoneResult(LECTURE, DONE)), 0.0))
    lines = [json.dumps(good | change) for change in changes]
    (trapped / MANIFEST_NAME).write_bytes(manifest_line(RUN, 0.0) + "".join(f"{line}\n" for line in lines).encode())
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(["archive", "--verify", str(trapped)])
    said, complained = out.getvalue(), err.getvalue()
    assert code in (0, 1, 2)
    assert len(complained.splitlines()) == (code == 2), complained
    assert (said == "") == (code == 2)
    assert f"{said}{complained}".replace("\n", "").isprintable()
    files = [change.get("outputs", DONE.files) for change in changes]
    assert said.count("\n") <= 1 + sum(len(each) for each in files if isinstance(each, dict | list | str))

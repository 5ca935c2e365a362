"""The manifest: what is written is read again, after kills and full disks, and nobody's bytes do any harm."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from texelflow.app.archive.jobs.jobs import Agreement, ArchiveInput, FrameRange, InputDone, PieceDone
from texelflow.app.archive.manifest import manifest_index
from texelflow.app.archive.manifest.manifest import MANIFEST_NAME, check_manifest, hold_folder, open_manifest
from texelflow.app.archive.manifest.manifest_index import ManifestIndex
from texelflow.app.archive.manifest.manifest_lines import (
    MOST_LINE_BYTES,
    RecordedResult,
    RunMark,
    RunRecord,
    manifest_line,
    read_manifest_line,
)
from texelflow.app.archive.results.result_names import NameBook
from texelflow.app.archive.results.results import ArchiveResult, DoneResult, FailedResult, PieceResult
from texelflow.gpu_delegate.base.errors import MediaError, UsageError

MARK = RunMark("5e77", "selfie", "abcd", {"texelflow": "0.1.0", "ray": "2.45.0", "python": "3.11.2"})
RUN = RunRecord(MARK, {"effect": "blur", "radius": 12, "look": None}, lead=60, piece_frames=3000)
LECTURE = ArchiveInput(-1, "/in/lecture.mp4", "lecture", 1_000_000, 1_700_000_000_000_000_000)
DONE = InputDone(
    sha256="c0ffee",
    input_bytes=1_000_000,
    frames=900,
    files={"out": "lecture.mp4", "masks": "lecture.masks.mp4"},
    file_bytes={"out": 5000, "masks": 700},
    seconds=12.345,
    worker="node:17",
    backend="native",
    renderer="x86-64 AVX2",
    agreement=Agreement(3, 0.998, 0.01),
    notes=("1 damaged frame",),
    file_sha256={"out": "0" * 64, "masks": "12" * 32},
    file_modified_ns={"out": 1_700_000_000_000_000_001, "masks": -1},
)
PIECE = PieceDone(2, FrameRange(6000, 8999, 60), 3000, {"out": "pieces/l-2.mp4"}, 48.0, "node:17", (1, 2), (2**64 - 1,))
RESULTS: tuple[ArchiveResult, ...] = (
    DoneResult(LECTURE, DONE),
    DoneResult(replace(LECTURE, size_bytes=None, modified_ns=None), replace(DONE, agreement=None, cut_off="100 bytes")),
    PieceResult(LECTURE, "c0ffee", PIECE),
    PieceResult(LECTURE, "c0ffee", replace(PIECE, unfit="its frames change size")),
    PieceResult(LECTURE, "c0ffee", replace(PIECE, cut_off="100 bytes", backend="gl", renderer="llvmpipe")),
    FailedResult(replace(LECTURE, address="/in/\udcff \u00e4\n.mp4", name="a/\u65e5"), "input", "no frames", 2),
    FailedResult(LECTURE, "machine", "no OpenGL", 10),
    FailedResult(LECTURE, "lost", "killed", 10),
)


def lines_of(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / MANIFEST_NAME).read_text("ascii").splitlines()]


def written(folder: Path, *results: ArchiveResult, resume: bool = False, force: bool = False) -> None:
    writer, index = open_manifest(folder, RUN, resume=resume, force=force)
    with index:
        for result in results:
            writer.put(result)
        writer.close()


@pytest.mark.parametrize("result", RESULTS)
def test_what_is_written_is_read_again(result: ArchiveResult) -> None:
    line = RecordedResult(MARK, result)
    assert read_manifest_line(manifest_line(line, 0.0)) == line


def test_a_piece_of_an_earlier_version_tells_less() -> None:
    result = PieceResult(LECTURE, "c0ffee", replace(PIECE, backend="gl"))
    fields = json.loads(manifest_line(RecordedResult(MARK, result), 0.0))
    for name in ("cut_off", "backend", "renderer"):
        del fields[name]
    read = read_manifest_line(json.dumps(fields).encode())
    assert read == RecordedResult(MARK, replace(result, piece=PIECE))


def test_a_run_is_read_again_and_lines_tell_when() -> None:
    line = manifest_line(RUN, 1_700_000_000.9)
    assert read_manifest_line(line) == RUN
    assert json.loads(line)["time"] == "2023-11-14T22:13:20Z"


def test_every_line_tells_what_made_it(tmp_path: Path) -> None:
    written(tmp_path, *RESULTS)
    run, *results = lines_of(tmp_path)
    assert (run["kind"], run["format"]) == ("run", 1)
    assert run["settings"] == {"effect": "blur", "radius": 12, "look": None}
    for line in results:
        assert line["versions"] == {"texelflow": "0.1.0", "ray": "2.45.0", "python": "3.11.2"}
        assert (line["model"], line["model_sha256"], line["settings_digest"]) == ("selfie", "abcd", "5e77")


def test_numbers_that_are_none_become_null() -> None:
    nan = Agreement(0, float("nan"), float("inf"))
    line = manifest_line(RecordedResult(MARK, DoneResult(LECTURE, replace(DONE, agreement=nan))), 0.0)
    assert b"NaN" not in line
    assert json.loads(line)["agreement"] == {"frames": 0, "least_iou": None, "largest_error": None}
    assert isinstance(read_manifest_line(line), RecordedResult)


def test_a_line_without_bounds_is_refused(tmp_path: Path) -> None:
    writer, index = open_manifest(tmp_path, RUN)
    with index, pytest.raises(MediaError, match="takes no such line"):
        writer.put(FailedResult(LECTURE, "input", "x" * MOST_LINE_BYTES, 2))
    writer.close()


def test_a_folder_with_a_manifest_is_kept_unless_the_user_says_what_to_do(tmp_path: Path) -> None:
    written(tmp_path, RESULTS[0])
    with pytest.raises(UsageError, match=r"has a manifest: --resume goes on with it, --force begins anew"):
        open_manifest(tmp_path, RUN)
    written(tmp_path, RESULTS[2], resume=True)
    assert [line["kind"] for line in lines_of(tmp_path)] == ["run", "done", "run", "piece"]
    writer, index = open_manifest(tmp_path, RUN, force=True)
    with index:
        assert index.last_run is None
    writer.put(RESULTS[0])
    writer.close()
    assert [line["kind"] for line in lines_of(tmp_path)] == ["run", "done"]


def test_a_run_without_results_leaves_no_line(tmp_path: Path) -> None:
    written(tmp_path)
    written(tmp_path, RESULTS[0])
    written(tmp_path, resume=True)
    assert [line["kind"] for line in lines_of(tmp_path)] == ["run", "done"]


@pytest.mark.parametrize("name", ["talk.mp4", "pictures/1.png", "x.JPG"])
@pytest.mark.parametrize("resume", [False, True])
def test_nobody_loses_what_lies_in_a_folder_without_a_manifest(tmp_path: Path, name: str, resume: bool) -> None:
    for each in (name, f".archive/models/{'0' * 64}/m", ".hidden.mp4", "lost+found/1.mp4", "run.log"):
        (tmp_path / each).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / each).touch()
    with pytest.raises(UsageError, match=f"has '{name.partition('/')[0]}' in it, and no manifest"):
        check_manifest(tmp_path, resume, force=False)
    check_manifest(tmp_path, resume, force=True)
    (tmp_path / name).rename(tmp_path / "notes")
    if "/" in name:
        (tmp_path / name).parent.rmdir()
    check_manifest(tmp_path, resume, force=False)
    check_manifest(tmp_path / "none", resume, force=False)


def test_a_link_that_leads_to_itself_is_called_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UsageError, match="has 'loop' in it, and no manifest"):
        check_manifest(tmp_path, resume=False, force=False)


def test_an_empty_manifest_is_none(tmp_path: Path) -> None:
    (tmp_path / MANIFEST_NAME).touch()
    written(tmp_path, RESULTS[0])
    assert [line["kind"] for line in lines_of(tmp_path)] == ["run", "done"]


def test_one_run_at_a_time_writes_a_folder(tmp_path: Path) -> None:
    writer, index = open_manifest(tmp_path, RUN)
    with index:
        for resume in (False, True):
            with pytest.raises(UsageError, match="is being written by another run"):
                open_manifest(tmp_path, RUN, resume=resume)
        writer.close()
    written(tmp_path, resume=True)


def test_a_run_holds_its_folder_before_it_has_a_manifest(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with hold_folder(folder) as held:
        for attempt in (hold_folder, lambda place: open_manifest(place, RUN)):
            with pytest.raises(UsageError, match="is being written by another run"):
                attempt(folder)
        assert not (folder / MANIFEST_NAME).exists()
        writer, index = open_manifest(folder, RUN, held=held)
        index.close()
    with pytest.raises(UsageError, match="is being written by another run"):
        hold_folder(folder)
    writer.close()
    hold_folder(folder).close()


def test_lines_are_on_the_disk_within_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, synced, fsync = [100.0], list[int](), os.fsync
    monkeypatch.setattr("texelflow.app.archive.manifest.manifest.time.monotonic", lambda: now[0])

    def counted(file: int) -> None:
        synced.append(file)
        fsync(file)

    monkeypatch.setattr("texelflow.app.archive.manifest.manifest.os.fsync", counted)
    writer, index = open_manifest(tmp_path, RUN)
    index.close()
    at_open = len(synced)
    assert writer.due_s() is None
    writer.put(RESULTS[0])
    writer.put(RESULTS[0])
    assert writer.due_s() == 1.0
    assert (len(synced), len(lines_of(tmp_path))) == (at_open + 1, 2), "the first one does not wait"
    at_open += 1
    now[0] += 1.0
    writer.tick()
    assert (len(synced), len(lines_of(tmp_path))) == (at_open + 1, 3)
    now[0] += 5.0
    writer.put(RESULTS[0])
    assert (len(synced), len(lines_of(tmp_path))) == (at_open + 2, 4), "a line that comes alone does not wait"
    writer.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_full_disk_ends_in_one_line_and_tears_none(tmp_path: Path) -> None:
    import resource

    writer, index = open_manifest(tmp_path, RUN)
    index.close()
    path = tmp_path / MANIFEST_NAME
    writer.put(RESULTS[0])
    whole = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    writer.put(RESULTS[0])
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 100, limits[1]))
    try:
        with pytest.raises(MediaError, match=r"manifest\.jsonl' cannot be written: File too large"):
            writer.sync()
        assert path.read_bytes() == whole
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    writer.close()
    assert [line["kind"] for line in lines_of(tmp_path)] == ["run", "done", "done"]


def test_what_a_killed_run_left_of_a_line_is_cut_off(tmp_path: Path) -> None:
    written(tmp_path, *RESULTS[:3])
    path = tmp_path / MANIFEST_NAME
    data = path.read_bytes()
    for rest in (data[: len(data) - 1], data[: len(data) - 300], data + b"\0" * 4096, data + b"{"):
        path.write_bytes(rest)
        whole = rest.rfind(b"\n") + 1
        writer, index = open_manifest(tmp_path, RUN, resume=True)
        with index:
            assert index.torn == len(rest) - whole
            assert [note.partition(": ")[2] for note in index.notes] == ["its last line was torn, and is left out"]
            writer.put(RESULTS[0])
        writer.close()
        assert path.read_bytes()[:whole] == rest[:whole]
        assert [line["kind"] for line in lines_of(tmp_path)[-2:]] == ["run", "done"]


@pytest.mark.parametrize(
    "line", [b'{"image":"a.png","label":3}', b"\0" * 99, b"x", b'{"kind":"run","time":"yesterday"}']
)
def test_a_strangers_line_without_an_end_is_kept(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / MANIFEST_NAME
    path.write_bytes(line)
    with pytest.raises(MediaError, match="line 1 is damaged: it does not begin a run"):
        open_manifest(tmp_path, RUN, resume=True)
    assert path.read_bytes() == line


@pytest.mark.parametrize("length", [1, 20, 30, 60, len(manifest_line(RUN, 0.0)) - 1])
def test_what_a_killed_run_left_of_the_first_line_is_cut_off(tmp_path: Path, length: int) -> None:
    (tmp_path / MANIFEST_NAME).write_bytes(manifest_line(RUN, 1_700_000_000.0)[:length])
    written(tmp_path, RESULTS[0], resume=True)
    assert [line["kind"] for line in lines_of(tmp_path)] == ["run", "done"]


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / MANIFEST_NAME)
    with pytest.raises(MediaError, match="is not a regular file"):
        open_manifest(tmp_path, RUN, resume=True)


def test_the_last_line_about_an_input_counts(tmp_path: Path) -> None:
    other = replace(LECTURE, address="/in/other.mp4", name="other")
    failed = FailedResult(other, "input", "no frames", 2)
    made = DoneResult(other, replace(DONE, files={"out": "other.mp4"}))
    written(tmp_path, FailedResult(LECTURE, "lost", "killed", 10), made, failed, RESULTS[0])
    with ManifestIndex(tmp_path / MANIFEST_NAME) as index:
        assert index.result_of(LECTURE.address) == RecordedResult(MARK, RESULTS[0])
        assert index.result_of(other.address) == RecordedResult(MARK, failed)
        assert index.result_of("/in/neither.mp4") is None
        assert (index.name_of(other.address), index.name_of("/in/neither.mp4")) == ("other", None)
        assert [index.has_name(name) for name in ("lecture", "Other", "neither")] == [True, True, False]
        assert (index.done, index.failed, index.last_run) == (2, 2, RUN)


def test_folders_that_results_are_in_are_known_each_once(tmp_path: Path) -> None:
    folder, file = replace(LECTURE, name="Day/one/a"), replace(LECTURE, address="/in/b.mp4", name="Day/one/b")
    made = DoneResult(folder, replace(DONE, files={"out": "Day/one/a", "masks": "Day/one/a.masks"}))
    failed = FailedResult(replace(LECTURE, address="/in/c.mp4", name="day/c"), "input", "no frames", 2)
    written(tmp_path, made, DoneResult(file, replace(DONE, files={"out": "Day/one/b.mp4"})), failed)
    with ManifestIndex(tmp_path / MANIFEST_NAME) as index:
        names = ["day", "Day/one", "Day/one/a", "Day/one/b", "day/c", "on"]
        assert [index.has_below(name) for name in names] == [True, True, False, False, False, False]
        assert [index.has_name(name) for name in names] == [False, False, True, True, True, False]
        assert [index.has_folder(name) for name in names] == [False, False, True, False, False, False]


def test_a_folder_is_not_taken_for_its_neighbors(tmp_path: Path) -> None:
    names = ("e0/x", "e.g/x", "e/\u00e9/x", "f")
    inputs = (replace(LECTURE, address=f"/in/{name}", name=name) for name in names)
    written(tmp_path, *(FailedResult(each, "input", "no frames", 2) for each in inputs))
    with ManifestIndex(tmp_path / MANIFEST_NAME) as index:
        folders = ("e", "e0", "e.g", "E/\u00c9", "E/e\u0301", "e/\u00e9/x", "f", "")
        assert [index.has_below(name) for name in folders] == [True] * 5 + [False] * 3


def test_addresses_are_told_apart_whatever_is_in_them(tmp_path: Path) -> None:
    addresses = ["", "/in/a", "/in/A", "/in/a\0", "/in/a\0b", "/in/\ud83d", "/in/\udcff", "/in/\U0001f600"]
    inputs = [replace(LECTURE, address=address, name=str(place)) for place, address in enumerate(addresses)]
    failed = [FailedResult(each, "input", "no frames", 2) for each in inputs]
    pieces = [PieceResult(each, "c0ffee", replace(PIECE, piece=place)) for place, each in enumerate(inputs)]
    written(tmp_path, *failed, *pieces)
    with ManifestIndex(tmp_path / MANIFEST_NAME) as index:
        assert [index.result_of(address) for address in addresses] == [RecordedResult(MARK, each) for each in failed]
        assert [index.name_of(address) for address in addresses] == [each.name for each in inputs]
        found = [list(index.pieces_of(address, "c0ffee", MARK)) for address in addresses]
        assert found == [[each.piece] for each in pieces]


def test_several_threads_ask_until_it_is_closed(tmp_path: Path) -> None:
    inputs = [replace(LECTURE, address=f"/in/{number}.mp4", name=str(number)) for number in range(50)]
    written(tmp_path, *(FailedResult(each, "input", "no frames", 2) for each in inputs))
    addresses = [each.address for each in inputs] * 20
    with ManifestIndex(tmp_path / MANIFEST_NAME) as index, ThreadPoolExecutor(4) as threads:
        assert list(threads.map(index.name_of, addresses)) == [each.name for each in inputs] * 20
        results = [line.result.input for line in threads.map(index.result_of, addresses) if line]
        assert [each.address for each in results] == addresses
    index.close()
    for ask in (index.result_of, index.name_of, index.own_files, index.has_name, index.has_below):
        with pytest.raises(ValueError, match="closed"):
            ask("/in/1.mp4")


def long_addresses(folder: Path, count: int) -> Path:
    """A manifest of so many lines, each with an address of 100 kB."""
    inputs = (replace(LECTURE, address=f"{number:0100000}") for number in range(count))
    written(folder, *(FailedResult(each, "input", "no frames", 2) for each in inputs))
    return folder / MANIFEST_NAME


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says how much memory is taken")
def test_memory_does_not_grow_with_the_manifest(tmp_path: Path) -> None:
    path = long_addresses(tmp_path, 400)
    program = f"""
import re, resource
from pathlib import Path
from {ManifestIndex.__module__} import ManifestIndex
taken = int(re.search(r"VmData:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) << 10
resource.setrlimit(resource.RLIMIT_DATA, (taken + (16 << 20),) * 2)
with ManifestIndex(Path({str(path)!r})) as index:
    print(index.database_bytes)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert int(told.stdout or 0) > 2 * 400 * 100_000, told.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which files are open")
def test_no_temporary_file_comes_into_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def taken_by(path: Path) -> list[int]:
        with ManifestIndex(path) as index:
            opened = [each for each in Path("/proc/self/fd").iterdir() if "etilqs" in os.path.realpath(each)]
            return [len(opened), len(list(index.last_results()))]

    path = long_addresses(tmp_path, 40)
    assert taken_by(path) == [1, 40]
    monkeypatch.setattr(manifest_index, "_FOLDERS", ("/nonexistent",))
    for variable in ("SQLITE_TMPDIR", "TMPDIR"):
        monkeypatch.setenv(variable, "/nonexistent")
    assert taken_by(path) == [0, 40]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which files are open")
def test_a_temporary_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with ManifestIndex(long_addresses(tmp_path, 40)) as index, open(os.devnull, "rb") as nothing:
        opened = [each for each in Path("/proc/self/fd").iterdir() if "etilqs" in os.path.realpath(each)]
        os.dup2(nothing.fileno(), int(opened[0].name))
        with pytest.raises(MediaError, match=r"^the temporary index of '.*' fails: .+; TMPDIR names a folder for it$"):
            list(index.last_results())


def test_pieces_of_the_same_contents_made_the_same_way_are_found(tmp_path: Path) -> None:
    pieces = [replace(PIECE, piece=number) for number in range(3)]
    written(tmp_path, *(PieceResult(LECTURE, "c0ffee", piece) for piece in pieces))
    with ManifestIndex(tmp_path / MANIFEST_NAME) as index:
        assert list(index.pieces_of(LECTURE.address, "c0ffee", MARK)) == pieces
        assert not list(index.pieces_of(LECTURE.address, "other", MARK))
        assert not list(index.pieces_of(LECTURE.address, "c0ffee", replace(MARK, model_sha256="1")))
        assert not list(index.pieces_of("/in/neither.mp4", "c0ffee", MARK))
    written(tmp_path, RESULTS[0], resume=True)
    with ManifestIndex(tmp_path / MANIFEST_NAME) as index:
        assert not list(index.pieces_of(LECTURE.address, "c0ffee", MARK)), "they were joined"


def test_a_damaged_line_of_a_piece_counts_as_absent(tmp_path: Path) -> None:
    written(tmp_path, PieceResult(LECTURE, "c0ffee", PIECE))
    path = tmp_path / MANIFEST_NAME
    path.write_bytes(path.read_bytes().replace(b'"frames":3000', b'"frames":"x"'))
    with ManifestIndex(path) as index:
        assert not list(index.pieces_of(LECTURE.address, "c0ffee", MARK))


def test_kinds_and_fields_of_later_versions_are_passed_over(tmp_path: Path) -> None:
    written(tmp_path, RESULTS[0])
    path = tmp_path / MANIFEST_NAME
    data = path.read_bytes().replace(b'"worker":', b'"color":{"a":[1]},"worker":')
    path.write_bytes(data + b'{"kind":"tape","reel":3}\n{"kind":"tape"}\n')
    with ManifestIndex(path) as index:
        assert index.notes == (f"{path}: lines of a later version are passed over: 2 of 'tape'",)
        assert index.result_of(LECTURE.address) == RecordedResult(MARK, RESULTS[0])


GOOD_RUN, GOOD_LINE = (manifest_line(each, 0.0) for each in (RUN, RecordedResult(MARK, RESULTS[0])))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"\n", "it is not JSON"),
        (b"[" * 100_000 + b"\n", "it is nested too deeply"),
        (b'{"kind":' + b"9" * 5000 + b"}\n", "it is not JSON"),
        (b'{"kind":NaN}\n', "it is not JSON"),
        (b"[]\n", "it is not an object"),
        (b"{}\n", "it has no 'kind'"),
        (b'{"kind":["done"]}\n', "its 'kind' is not text"),
        (b'{"kind":"done"}\n', "it has no 'settings_digest'"),
        (b'{"kind":"\xc3\xa4"}\n', "it is not ASCII"),
        (b'{"kind":"piece","input":7}\n', "its 'input' is not text"),
        (b'{"kind":"piece","input":"a\n', "it is not JSON"),
        (b" " * (MOST_LINE_BYTES + 1) + b"\n", "it is longer than 1048576 bytes"),
        (GOOD_RUN.replace(b'"format":1', b'"format":2'), "it is of format 2, and this version reads 1"),
        (GOOD_LINE.replace(b'"frames":900', b'"frames":-1'), "its 'frames' is not a whole number from 0 on"),
        (GOOD_LINE.replace(b'"frames":900', b'"frames":true'), "its 'frames' is not a whole number from 0 on"),
        (GOOD_LINE.replace(b'"seconds":12.345', b'"seconds":1e999'), "its 'seconds' is not a number"),
        (GOOD_LINE.replace(b'"name":"lecture"', b'"name":"../lecture"'), "its 'name' is not a name within the folder"),
        (GOOD_LINE.replace(b'"name":"lecture"', b'"name":"/etc/x"'), "its 'name' is not a name within the folder"),
        (GOOD_LINE.replace(b'"name":"lecture"', b'"name":"a\\u0000"'), "its 'name' is not a name within the folder"),
        (GOOD_LINE.replace(b'"name":"lecture"', b'"name":"a\\u001b[2J"'), "its 'name' is not a name within the folder"),
        (GOOD_LINE.replace(b'"name":"lecture"', b'"name":"' + b"a" * 5000 + b'"'), "its 'name' is not a name within"),
        (GOOD_LINE.replace(b'"out":"lecture.mp4"', b'"out":"../x"'), "its 'outputs' is not a table of names within"),
        (
            GOOD_LINE.replace(b'"out":"lecture.mp4"', b'"out":"talk.mp4"'),
            "its 'outputs' are not called after its 'name'",
        ),
        (GOOD_LINE.replace(b'"out":"lecture.mp4"', b'"out":"lecture./x"'), "its 'outputs' are not called after its"),
        (GOOD_LINE.replace(b'"out":"000', b'"out":"xyz'), "its 'output_sha256' is not a table of sha256"),
        (
            GOOD_LINE.replace(b'"masks":-1}', b'"masks":"1"}'),
            "its 'output_modified_ns' is not a table of whole numbers",
        ),
        (GOOD_LINE.replace(b'["1 damaged frame"]', b"[1]"), "its 'notes' is not a list of texts"),
        (GOOD_LINE.replace(b'"agreement":{', b'"agreement":[],"x":{'), "its 'agreement' is not a table"),
    ],
)
def test_a_damaged_line_in_the_middle_ends_in_one_line(tmp_path: Path, line: bytes, why: str) -> None:
    path = tmp_path / MANIFEST_NAME
    path.write_bytes(GOOD_RUN + line + GOOD_LINE)
    with pytest.raises(MediaError) as caught:
        open_manifest(tmp_path, RUN, resume=True)
    assert str(caught.value).startswith(f"'{path}', line 2 is damaged: {why}")
    assert len(str(caught.value).splitlines()) == 1
    assert path.read_bytes() == GOOD_RUN + line + GOOD_LINE


def test_a_line_of_an_earlier_version_has_no_digests() -> None:
    fields = json.loads(GOOD_LINE)
    del fields["output_sha256"], fields["output_modified_ns"]
    read = read_manifest_line(json.dumps(fields).encode())
    assert read == RecordedResult(MARK, DoneResult(LECTURE, replace(DONE, file_sha256={}, file_modified_ns={})))


def test_a_name_belongs_to_the_input_that_had_it_first(tmp_path: Path) -> None:
    first, second = (
        replace(LECTURE, address="/in/1.mp4", name="Talk"),
        replace(LECTURE, address="/in/2.mp4", name="talk"),
    )
    other = replace(LECTURE, address="/in/3.mp4", name="other")
    written(tmp_path, *(FailedResult(each, "input", "no frames", 2) for each in (first, second, other, second, first)))
    with ManifestIndex(tmp_path / MANIFEST_NAME) as index:
        assert [index.name_of(each.address) for each in (first, second, other)] == ["Talk", None, "other"]
        book = NameBook(index)
        called = [book.name_for(each.address, each.address[4:]) for each in (second, first, other)]
        assert called == ["2", "Talk", "other"]


def test_a_result_that_two_inputs_claim_is_nobodys(tmp_path: Path) -> None:
    other = replace(LECTURE, address="/in/other.mp4")
    written(tmp_path, DoneResult(other, DONE), RESULTS[0])
    with ManifestIndex(tmp_path / MANIFEST_NAME) as index:
        assert [index.own_files(each.address) for each in (LECTURE, other)] == [(), ()]


def test_the_last_result_of_each_input_and_what_it_ever_owned(tmp_path: Path) -> None:
    later = DoneResult(LECTURE, replace(DONE, files={"out": "lecture.mkv"}, file_sha256={"out": "7" * 64}))
    other = FailedResult(replace(LECTURE, address="/in/other.mp4", name="other"), "input", "no frames", 2)
    written(tmp_path, RESULTS[0], other, PieceResult(LECTURE, "c0ffee", PIECE), later)
    with ManifestIndex(tmp_path / MANIFEST_NAME) as index:
        assert [line.result for line in index.last_results()] == [other, later]
        assert index.own_files(LECTURE.address) == (
            ("lecture.mkv", "7" * 64), ("lecture.mp4", "0" * 64), ("lecture.masks.mp4", "12" * 32),
        )  # fmt: skip
        assert index.own_files("/in/other.mp4") == ()
    with ManifestIndex(tmp_path / "none") as index:
        assert list(index.last_results()) == []


def test_what_does_not_begin_with_a_run_is_no_manifest(tmp_path: Path) -> None:
    (tmp_path / MANIFEST_NAME).write_bytes(GOOD_LINE)
    with pytest.raises(MediaError, match="line 1 is damaged: it does not begin a run"):
        open_manifest(tmp_path, RUN, resume=True)


MANIFEST = GOOD_RUN + b"".join(manifest_line(RecordedResult(MARK, result), 0.0) for result in RESULTS)
PIECES_OF_JSON = (
    b"\n",
    b"{",
    b"}",
    b"[",
    b'"',
    b"null",
    b"-1",
    b"1e400",
    b"\\ud800",
    b"\x00",
    b"\xff",
    b'{"kind":"run"}\n',
    b"9" * 99,
)
MUTATIONS = st.lists(
    st.tuples(
        st.integers(0, len(MANIFEST)), st.integers(0, 40), st.sampled_from(PIECES_OF_JSON) | st.binary(max_size=8)
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=100)
@example([(0, 0, b"\xff")])
@given(MUTATIONS)
def test_no_bytes_do_any_harm(
    tmp_path_factory: pytest.TempPathFactory, mutations: list[tuple[int, int, bytes]]
) -> None:
    data = MANIFEST
    for place, removed, put in mutations:
        data = data[:place] + put + data[place + removed :]
    path = tmp_path_factory.getbasetemp() / "mutated.jsonl"
    path.write_bytes(data)
    index, told = read_or_told(path)
    assert len(told.splitlines()) <= 1
    if index is None:
        return
    with index:
        assert index.end + index.torn == len(data)
        for address in {result.input.address for result in RESULTS}:
            recorded = index.result_of(address)
            assert recorded is None or recorded.result.input.address == address
            for piece in index.pieces_of(address, "c0ffee", MARK):
                assert not any(".." in file or Path(file).is_absolute() for file in piece.files.values())
        assert all(len(note.splitlines()) == 1 for note in index.notes)


def read_or_told(path: Path) -> tuple[ManifestIndex | None, str]:
    """The index of a manifest, or what is said of one that is damaged."""
    try:
        return ManifestIndex(path), ""
    except MediaError as error:
        return None, str(error)

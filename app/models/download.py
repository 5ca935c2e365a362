"""Downloads a pinned package, as a wheel or as source, with pip as the user has configured it."""

import errno
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from texelflow.gpu_delegate.base.errors import CatalogueError
from texelflow.gpu_delegate.base.isolated_python import python_command

__all__ = ["DISK_FULL", "DownloadProgress", "download_source", "download_wheel"]

DownloadProgress = Callable[[int, int], None]

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_POLL_S = 0.1
# pip, which ends as soon as its standard input is closed: it must not outlive a killed program.
_PIP = """
import os, runpy, threading
threading.Thread(target=lambda: (sys.stdin.buffer.raw.read(1), os._exit(1)), daemon=True).start()
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
_BROKEN_OFF = re.compile(r"Wheel .* is invalid|incomplete-download|IncompleteRead|not enough bytes")
# Any one wheel will do, whatever machine asks: what is taken from it is data. Not every Python has a wheel of its own.
_ANY_WHEEL = ("--only-binary=:all:", "--python-version=3.12", "--platform=manylinux_2_28_x86_64")
_SOURCE = ("--no-binary=:all:", "--no-build-isolation", "--use-pep517", "--require-hashes")
_BACKEND = """
import os
class __legacy__:
    def prepare_metadata_for_build_wheel(folder, config_settings=None):
        os.mkdir(os.path.join(folder, "{name}-{version}.dist-info"))
        with open(os.path.join(folder, "{name}-{version}.dist-info", "METADATA"), "w") as file:
            file.write("Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
        return "{name}-{version}.dist-info"
"""


def download_wheel(requirement: str, expected_bytes: int, work: Path, progress: DownloadProgress | None = None) -> Path:
    """Downloads the wheel of `requirement`, without its dependencies, into the empty folder `work`.

    `progress` gets (bytes so far, bytes in all) about ten times a second. An interrupt ends pip, too.
    Raises CatalogueError with one line if pip is missing or fails, OSError (one of DISK_FULL) if there is no room.
    """
    return _download(requirement, (*_ANY_WHEEL, requirement), "*.whl", expected_bytes, work, progress)


def download_source(
    name: str, version: str, sha256: str, expected_bytes: int, work: Path, progress: DownloadProgress | None = None
) -> Path:
    """The same of a package's source archive, .tar.gz, which pip takes by its checksum alone.

    To know name and version of what it downloads, pip would run the package's own code. It gets a build backend that
    states both instead, under the name of the one that it turns to, and runs nothing else.
    """
    backend = work / "backend"
    (backend / "setuptools").mkdir(parents=True)
    (backend / "setuptools" / "__init__.py").touch()
    (backend / "setuptools" / "build_meta.py").write_text(_BACKEND.format(name=name, version=version), "utf-8")
    pinned = work / "requirements.txt"
    pinned.write_text(f"{name}=={version} --hash=sha256:{sha256}\n", "utf-8")
    arguments = (*_SOURCE, f"--requirement={pinned}")
    return _download(f"{name}=={version}", arguments, "*.tar.gz", expected_bytes, work, progress, backend)


def _download(
    what: str,
    arguments: Sequence[str],
    pattern: str,
    expected_bytes: int,
    work: Path,
    progress: DownloadProgress | None,
    imported: Path | None = None,
) -> Path:
    """What pip downloads by its arguments: the one file of that pattern. `imported` is where builds import from."""
    temporary, target, messages = work / "tmp", work / "target", work / "messages"
    temporary.mkdir()
    target.mkdir()
    # pip downloads into its temporary folder first: ours is on the disk where there must be room, and can be watched
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    environment = {**os.environ, **places, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if imported:
        environment["PYTHONPATH"] = str(imported)
    with messages.open("wb") as output:
        code = _run(
            python_command(_PIP, "download", "-q", "--no-input", "--no-deps", f"--dest={target}", *arguments),
            environment,
            output.fileno(),
            lambda: _report(work, expected_bytes, progress),
        )
    found = list(target.glob(pattern))
    if code != 0 or len(found) != 1:
        _raise_failure(what, messages.read_text("utf-8", "replace").splitlines())
    if progress is not None:
        progress(expected_bytes, expected_bytes)
    return found[0]


def _run(command: Sequence[str], environment: dict[str, str], output: int, poll: Callable[[], None]) -> int:
    """Runs to the end, calling `poll` now and then; the process never outlives the call. Returns its exit code."""
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=output, stderr=output) as process:
        try:
            while True:
                poll()
                try:
                    return process.wait(_POLL_S)
                except subprocess.TimeoutExpired:
                    continue
        except BaseException:
            process.kill()
            raise


def _report(work: Path, expected_bytes: int, progress: DownloadProgress | None) -> None:
    if progress is not None:
        progress(min(_largest_file_bytes(work), expected_bytes), expected_bytes)


def _largest_file_bytes(folder: Path) -> int:
    """The size of the download so far: pip keeps a second copy for its cache, so sizes must not be summed."""
    largest = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, os.stat(os.path.join(parent, name)).st_size)
            except OSError:
                continue  # moved by pip meanwhile
    return largest


def _raise_failure(requirement: str, lines: Sequence[str]) -> None:
    """Raises what pip's own output says, as one line."""
    text = "\n".join(lines)
    for code in DISK_FULL:
        if f"[Errno {code}]" in text:
            raise OSError(code, os.strerror(code))
    if "No module named pip" in text:
        raise CatalogueError(f"{requirement} cannot be fetched: this Python has no pip; add it: python -m ensurepip")
    said = [line.strip() for line in lines if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in said if line.startswith("ERROR:")]
    last = (errors or said or ["pip said nothing"])[-1]
    # pip also says "No matching distribution" when it could not ask the index at all; only its warnings tell why
    broken = re.search(r"connection broken by .*?: (?:\[Errno -?\d+\] )?([^:'\"()]+?)[ .]*['\"()]", text)
    if broken and last.startswith("No matching distribution"):
        last = f"no connection to the package index ({broken[1]})"
    if _BROKEN_OFF.search(text):
        last = "the download broke off, or is damaged; try again"
    raise CatalogueError(f"{requirement} cannot be fetched: {last}")

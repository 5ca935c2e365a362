"""Writes the files of a report of `bench gpu`: JSON, a page to read, and an archive of both.

All texts lose what tells whose machine it was (gpu_privacy.py). docs/gpu_report.md explains the JSON.
"""

import json
import os
import zipfile
from pathlib import Path
from typing import Any

from texelflow.gpu_delegate.base.errors import MediaError

from .gpu_page import report_page
from .gpu_privacy import personal_words, without_personal

GpuReport = dict[str, Any]

FORMAT = 1  # of the JSON; a key that means something else gets another number
JSON_NAME, PAGE_NAME, ARCHIVE_NAME = "report.json", "report.html", "report.zip"


def save_report(folder: Path, report: GpuReport) -> GpuReport:
    """Write the JSON file, whole or not at all: what it holds. Raises MediaError."""
    cleaned: GpuReport = without_personal(report, personal_words())
    _write(folder / JSON_NAME, json.dumps(cleaned, indent=1).encode())
    return cleaned


def finish_report(folder: Path, report: GpuReport) -> None:
    """Write the JSON file, the page and the archive. Raises MediaError."""
    cleaned = save_report(folder, report)
    _write(folder / PAGE_NAME, report_page(cleaned).encode())
    part = folder / f"{ARCHIVE_NAME}.part"
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in (JSON_NAME, PAGE_NAME):
                archive.write(folder / name, name)
        os.replace(part, folder / ARCHIVE_NAME)
    except OSError as error:
        raise MediaError(f"'{folder / ARCHIVE_NAME}' cannot be written: {error.strerror}") from error


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except OSError as error:
        raise MediaError(f"'{path}' cannot be written: {error.strerror}; choose another place") from error

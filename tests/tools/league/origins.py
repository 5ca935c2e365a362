"""Where models of folders are from: a file in the repository has that, by the beginning of each file's SHA-256."""

import csv
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("origins.csv")


@dataclass(frozen=True)
class Origin:
    """Of one model."""

    name: str
    sha256: str  # its first 16 digits
    origin: str
    licence: str


def origins(file: Path = FILE) -> dict[str, Origin]:
    """By the first digits of their SHA-256."""
    with file.open(encoding="utf-8", newline="") as lines:
        return {row["sha256"]: Origin(**row) for row in csv.DictReader(lines)}

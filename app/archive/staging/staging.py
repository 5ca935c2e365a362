"""Copies what workers on any machine need, models and backgrounds, to the staging folder in the output folder.

The workers' settings name the copies. All of the staging folder can be deleted while nothing runs; then unfinished
pieces are rendered again.
"""

import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from texelflow.gpu_delegate.base.errors import OutputError
from texelflow.gpu_delegate.reading.bundles import on_disk

from ...atomic import publish
from ...frame.looks.effects import BUILT_IN_BACKGROUNDS
from ...models.catalogue import Progress, resolve
from ...models.entries import COMBINED
from ...replay.made_by import told_of_settings
from ...session.derived import chosen_look_of
from ...settings.settings import Settings
from ..jobs.worker_config import STAGING

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Staged:
    """Of one run: the workers' settings, what tags their results, and which model that is."""

    settings: Settings
    made_from: tuple[str, ...]
    model: str
    model_sha256: str


def prepare_staging(settings: Settings, out: Path, progress: Progress | None = None, writes: bool = True) -> Staged:
    """Make the staging folder in `out`, and copy the model and the background there, under their sha256.

    `progress` is that of a model that is fetched. Copies of earlier runs are used again; without `writes` nothing is
    made. Raises CatalogueError, and OutputError or MediaError for a folder that cannot be written.
    """
    staging = out.absolute() / STAGING
    model = resolve(settings.model, progress)
    background = chosen_look_of(settings).background
    try:
        if writes:
            staging.mkdir(parents=True, exist_ok=True)
        model_file, member = on_disk(model.path)
        staged_model, digest = _copied(model_file, staging / "models", writes)
        staged = settings if settings.model in COMBINED else replace(settings, model=str(staged_model / member))
        if background and settings.background not in BUILT_IN_BACKGROUNDS:
            staged = replace(staged, background=str(_copied(background, staging / "backgrounds", writes)[0]))
    except OSError as error:
        raise OutputError(f"'{staging}' cannot be prepared ({error.strerror}); choose another --out") from error
    name = model.entry.name if model.entry else model.path.name
    return Staged(staged, told_of_settings(settings), name, digest)


def _copied(file: Path, folder: Path, writes: bool) -> tuple[Path, str]:
    """Where a file's copy lies, or would, in a folder named by its sha256, and that. Raises OSError."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            digest.update(chunk)
    place = folder / digest.hexdigest() / file.name
    if not writes or (place.is_file() and place.stat().st_size == file.stat().st_size):
        return place, digest.hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder)
    os.close(handle)
    aside = Path(name)
    try:
        shutil.copyfile(file, aside)
        aside.chmod(0o644)  # workers may be other users
        publish(aside, place)
    finally:
        aside.unlink(missing_ok=True)
    return place, digest.hexdigest()

"""Thousands of inputs go in; workers on one machine or many make of each what replay makes; a summary comes out."""

import contextlib
import hashlib
import pickle
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from texelflow.gpu_delegate.errors import OutputError

from ..console import Console, counted
from ..opengl_options import opengl_of
from ..session.derived import lead_of
from ..settings.settings import Settings
from ..signals import exit_code, stop_flag
from .archive_loop import ArchiveLoop
from .cluster import Cluster
from .fetching import InputCache
from .figures import ArchiveFigures
from .inputs import InputListing
from .jobs import ArchiveInput, Cut, PieceDone
from .manifest import MANIFEST_NAME, ManifestWriter, open_manifest
from .manifest_index import ManifestIndex
from .manifest_lines import RunMark, RunRecord
from .options import ArchiveOptions
from .progress import archive_progress
from .ray_cluster import RayCluster, RayOptions, check_ray, open_ray
from .ray_worker import GPU_CHOICE, WorkerCharge
from .results import SkippedInput
from .resume import to_be_done
from .scheduler import Scheduler
from .staging import Staged, prepare_staging
from .versions import own_versions
from .worker_config import STAGING, WorkerConfig

SOME_FAILED, SOME_CUT_OFF = 2, 3  # exit codes
_WORKER = ("texelflow.app.archive.worker", "ArchiveWorker")


def archive(options: ArchiveOptions, console: Console, as_json: bool = False) -> tuple[dict[str, Any], int]:
    """Run it: what it came to, and the exit code.

    0, 2 if any input failed or the run could not go on, 3 if any was cut off, 130 or 143 if it was interrupted. Raises
    TexelflowError for what is wrong before any work begins, and where the manifest cannot be written.
    """
    check_ray()
    settings, out = options.watch().settings, options.out.absolute()
    listing = InputListing(options.inputs, out, of_folders=options.format == "png")
PLACEHOLDER

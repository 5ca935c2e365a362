"""The user's cache folder, in which the program keeps what it has fetched or found out."""

import os
from pathlib import Path

import platformdirs

VARIABLE = "TEXELFLOW_CACHE"


def cache_folder() -> Path:
    """TEXELFLOW_CACHE, or the user's cache folder; it may not exist yet."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(
            os.path.expanduser(chosen)
        )  # unlike Path.expanduser, this raises nothing for users that do not exist
    return Path(platformdirs.user_cache_dir("texelflow", appauthor=False))

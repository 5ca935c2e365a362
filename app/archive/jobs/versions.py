"""The versions of the program and of what results depend on, and how those of two machines differ."""

import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

_DECIDING = ("texelflow", "av")  # what makes pictures, and what encodes them
_TOLD = ("ray",)


def own_versions() -> Mapping[str, str]:
    """Of this process, by name, as manifests have them."""
    found = {"python": platform.python_version()}
    for name in (*_DECIDING, *_TOLD):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def versions_differ(wanted: Mapping[str, str], here: Mapping[str, str]) -> str | None:
    """What is not as the run needs it, in one line; None if all is."""
    for name in _DECIDING:
        if name in wanted and wanted[name] != here.get(name):
            return f"has {name} {here.get(name, 'not at all')}, this run is by {wanted[name]}"
    return None

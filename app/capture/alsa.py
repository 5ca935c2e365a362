"""Finds this machine's ALSA settings and plugins for the copy of ALSA in PyAV's wheel.

That copy looks for them where it was built. It reads the environment when it is first used.
"""

import contextlib
import ctypes
import os
import platform
import sys
from collections.abc import Callable, Mapping

_SETTINGS = ("/usr/share/alsa", "/usr/local/share/alsa", "/run/current-system/sw/share/alsa")
_PULSE = "libasound_module_pcm_pulse.so"
_OWN = "libasound.so.2"  # the system's, which its plugins load
_MAPS = "/proc/self/maps"  # names the libraries that are loaded


def plugin_folders(machine: str) -> tuple[str, ...]:
    """Where distributions keep ALSA's plugins, for a processor by its name."""
    return (
        f"/usr/lib/{machine}-linux-gnu/alsa-lib", "/usr/lib64/alsa-lib", "/usr/lib/alsa-lib",
        "/run/current-system/sw/lib/alsa-lib",
    )  # fmt: skip


def variables(
    environment: Mapping[str, str], machine: str, exists: Callable[[str], bool] = os.path.isdir
) -> dict[str, str]:
    """What is to be set: only folders that are there, and nothing that the person has set."""
    requested = {"ALSA_CONFIG_DIR": _SETTINGS, "ALSA_PLUGIN_DIR": plugin_folders(machine)}
    found = {
        name: next(filter(exists, folders), "") for name, folders in requested.items() if not environment.get(name)
    }
    return {name: folder for name, folder in found.items() if folder}


def prepare() -> None:
    """Set them, and keep ALSA's own complaints from the terminal. Harmless when repeated; nothing but on Linux."""
    if sys.platform == "linux":
        os.environ.update(variables(os.environ, platform.machine()))
        with contextlib.suppress(OSError, AttributeError):
            _silence()


def alsa_advice(environment: Mapping[str, str], exists: Callable[[str], bool] = os.path.exists) -> str:
    """What to install where no device is found; '' where everything is there."""
    has_settings = environment.get("ALSA_CONFIG_PATH") or exists(f"{environment.get('ALSA_CONFIG_DIR', '')}/alsa.conf")
    if not has_settings:
        return "ALSA's settings are missing: install libasound2-data (Debian) or alsa-lib (Fedora, Arch)"
    if not exists(f"{environment.get('ALSA_PLUGIN_DIR', '')}/{_PULSE}"):
        return (
            "microphones of PulseAudio and PipeWire come through ALSA's plugin: install libasound2-plugins (Debian) or "
            "alsa-plugins-pulseaudio (Fedora)"
        )
    return ""


def _silence() -> None:
    """Give ALSA a function to call with its complaints that looks at none of them: labs of the C library."""
    with contextlib.suppress(OSError):
        ctypes.CDLL(_OWN)  # plugins complain through it
    with open(_MAPS, encoding="utf-8", errors="replace") as maps:
        libraries = {line.split(maxsplit=5)[5].strip() for line in maps if "libasound" in line}
    ignore = ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p)
    for library in libraries:
        ctypes.CDLL(library).snd_lib_error_set_handler(ignore)

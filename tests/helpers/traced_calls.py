"""Tells, of calls of OpenGL as apitrace writes them, those that bring pixels or buffers to the CPU."""

import re
import subprocess
from pathlib import Path

# In all forms (n, Named, Sub, Texture, ARB); mapping, too, if it reads
_READING = re.compile(r"gl(ReadPixels|Readn|Get\w*(Image|SubData)|Map\w*Buffer)\w*\(")
_WRITES_ONLY = re.compile(r"\b(GL_WRITE_ONLY|access = GL_MAP_WRITE_BIT(?!.*GL_MAP_READ_BIT))")


def reading(calls: list[str]) -> list[str]:
    """Those of them that read back."""
    return [call for call in calls if _READING.match(call) and not _WRITES_ONLY.search(call)]


def calls_of(trace: Path) -> list[str]:
    """All calls of a trace, one a line."""
    dump = ("apitrace", "dump", "--call-nos=no", "--color=never", "--multiline=no", str(trace))
    return subprocess.run(dump, capture_output=True, text=True, timeout=120, check=True).stdout.splitlines()

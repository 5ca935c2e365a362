"""Combines flags, the file of settings and defaults, and does so again when the file changes.

Flags override the file, which overrides defaults. What is changed while running stays until the file changes it.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from texelflow.gpu_delegate.base.errors import UsageError

from .config import default_path, read_config
from .flags import flag_of
from .settings import (
    Settings,
    SettingValue,
    Verb,
    changed,
    current_names,
    defaults,
    of_verb,
    with_private_defaults,
    with_values,
)

_INTERVAL_NS = 500_000_000

FileStamp = tuple[int, int, int]  # when it was written, its size, which file it is


class ConfigWatch:
    """Looks after one file: the one named, or for live the user's own, which need not be there yet.

    `settings` are those to begin with, `flags` those of the command line among them.
    """

    def __init__(
        self,
        path: Path | None = None,
        flags: Mapping[str, object] | None = None,
        verb: Verb = "live",
        given: Settings | None = None,
        own_file: bool = True,
        **unless_said: SettingValue,
    ) -> None:
        """`flags` are the values by name that were given; unless_said are defaults besides the verb's own.

        `given` settings take the place of a file's. own_file: whether live reads the user's own where none is named.

        Raises UsageError for wrong values in either.
        """
        self.path = path or (default_path() if verb == "live" and own_file else None)
        self._defaults = with_values(defaults(verb), unless_said)
        self._seen = self._read = _stamp(self.path)
        is_there = path is not None or self._seen is not None
        self._verb = verb
        self._file = given or self._defaults
        if self.path and is_there:
            self._file = self._read_file(self.path)
        self._next_ns = 0
        said = dict(flags or {})
        self.settings = with_values(self._file, {**implied_by(said), **said}, flag_of)
        if self.settings.private:  # its defaults are others, whoever says that it is
            self._defaults = with_private_defaults(self._defaults)
            if given is None:
                self._file = self._read_file(self.path) if self.path and is_there else self._defaults
            self.settings = with_values(self._file, {**implied_by(said), **said}, flag_of)
        self.flags: Mapping[str, object] = current_names(said)

    def poll(self, now_ns: int, current: Settings) -> Settings | str | None:
        """The current settings with what has changed in the file, or one line on what is wrong there; None: no change.

        Looks at most twice a second, and reads a file only once it has not changed between two looks.
        """
        if now_ns < self._next_ns or self.path is None:
            return None
        self._next_ns = now_ns + _INTERVAL_NS
        last, self._seen = self._seen, _stamp(self.path)
        if self._seen is None or self._seen != last or self._seen == self._read:
            return None
        self._read = self._seen
        try:
            before, self._file = self._file, self._read_file(self.path, self.path.name)
        except UsageError as error:
            return str(error)
        names = set(changed(before, self._file)) - self.flags.keys()
        settings = replace(current, **{name: getattr(self._file, name) for name in names})
        return None if settings == current else settings

    def _read_file(self, path: Path, name: str = "") -> Settings:
        """What a file says to this verb; what it says to others alone is checked, and left."""
        return of_verb(read_config(path, name, self._defaults), self._verb)


def implied_by(flags: Mapping[str, object]) -> dict[str, object]:
    """What is meant where flags do not say it: the effect to which alone one of them belongs, the figures."""
    effects = {"background": "replace", "blur": "blur"}
    meant = [("effect", effect) for name, effect in effects.items() if flags.get(name)][:1]
    figures = any(name.startswith("overlay_") for name in flags)
    return dict([*meant, *([("overlay", True)] if figures else [])])


def _stamp(path: Path | None) -> FileStamp | None:
    """What changes whenever the file does; None where there is none."""
    if path is None:
        return None
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino

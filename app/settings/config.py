"""Reads and writes the TOML file of settings; an error is one line that says what is wrong where."""

import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import platformdirs

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.wording import meant

from ..names import as_written
from .settings import Settings, SettingValue, Spec, as_text, meaning, setting_meant, specs, with_values

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_BYTES = 1 << 16  # it is read between two frames; all settings with their help take a tenth of that
_MOST_DOTS = 200  # in a line: Python's parser takes minutes for keys of some thousand parts

_PARSER_LINE = re.compile(r" ?\(at line (\d+), column \d+\)$")
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\])*"'
    r"|'[^']*'"
    r"|\#[^\n]*"
    r"|[A-Za-z0-9_-]+"
    r"|.",
    re.DOTALL,
)
_PART = re.compile(r"[\"'A-Za-z0-9_-]")  # begins a part of a key

KeyPath = tuple[str, ...]


def default_path() -> Path:
    """Where the file is looked for unless another is named."""
    return platformdirs.user_config_path("texelflow", appauthor=False) / "live.toml"


def read_config(path: Path, name: str = "", defaults: Settings | None = None) -> Settings:
    """The settings that a file makes. Raises UsageError: no such file, no TOML, no such setting, a wrong value.

    `name` is what complaints call it; the whole path otherwise. `defaults` hold where it says nothing.
    """
    called = name or as_written(path)
    text = _read(path, called)
    tables, lines = _parsed(text, called), key_lines(text)
    values: dict[str, object] = {}
    places: dict[str, str] = {}
    for section, key, value in _entries(tables):
        place = f"{called}, line {_line(lines, (section,) if key is None else (section, key))}:"
        wrong = _misplaced(section, key, value)
        if wrong or key is None:
            raise UsageError(f"{place} {wrong}")
        values[key], places[key] = value, f"{place} [{section}] {key} ="
    return with_values(defaults or Settings(), values, places.__getitem__)


def dump(settings: Settings) -> str:
    """A file that sets every setting, with what each means; it reads back to equal settings."""
    lines, section = ["# Settings of texelflow. Saved while a window runs by it, the file is read again at once."], ""
    for spec in specs():
        if spec.section != section:
            section = spec.section
            lines += ["", f"[{section}]"]
        lines += [_comment(spec), f"{spec.name} = {_written(getattr(settings, spec.name))}"]
    return "\n".join(lines) + "\n"


def _comment(spec: Spec) -> str:
    """What a setting is for and what it may be."""
    choices = f"one of {', '.join(spec.choices)}" if spec.kind == "choice" else ""
    facts = "; ".join(filter(None, (choices, meaning(spec), spec.takes)))
    return f"# {spec.help} ({facts})" if facts else f"# {spec.help}"


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line, from 1 on, of each table's header and each key of a valid TOML text; an inline table is one value."""
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    parts: list[str] = []
    line, depth, place = 1, 0, "key"
    for token in _TOKEN.findall(text):
        if place == "value":
            depth += (token in ("[", "{")) - (token in ("]", "}"))
        elif place == "key" and token == "[":
            place, table = "header", ()
        elif token == {"key": "=", "header": "]"}.get(place):
            key = (*table, *parts)
            lines.setdefault(key, line)
            place, table = ("value", table) if place == "key" else ("rest", key)
        elif _PART.match(token):
            parts.append(_unquoted(token))
        if token == "\n" and not depth:
            place, parts = "key", []
        line += token.count("\n")
    return lines


def _read(path: Path, called: str) -> str:
    """The whole file as text. Raises UsageError."""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{called}: not a regular file; name a TOML file")
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise UsageError(f"{called}: too large for a file of settings, which have at most {MOST_BYTES >> 10} KB")
        return data.decode("utf-8-sig")
    except OSError as error:
        advice = "; --dump-config prints one" if isinstance(error, FileNotFoundError) else ""
        raise UsageError(f"cannot read {called}: {error.strerror}{advice}") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{called}, line {line}: not UTF-8; save it as UTF-8") from None
    except ValueError:  # NUL
        raise UsageError(f"{called}: no file has such a name") from None


def _open_at_once(path: str, flags: int) -> int:
    """Opening a pipe waits for somebody to write into it, otherwise."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _parsed(text: str, called: str) -> dict[str, Any]:
    """The tables of a TOML text. Raises UsageError."""
    dotted = next((number for number, line in enumerate(text.split("\n"), 1) if line.count(".") > _MOST_DOTS), 0)
    if dotted:
        raise UsageError(f"{called}, line {dotted}: too many dots")
    try:
        tables: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _PARSER_LINE.search(str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        raise UsageError(f"{called}, line {line}: {_PARSER_LINE.sub('', str(error))}") from None
    except ValueError:
        raise UsageError(f"{called}: a number of too many digits; see --dump-config") from None
    except RecursionError:
        raise UsageError(f"{called}: brackets within brackets without end; see --dump-config") from None
    return tables


def _entries(tables: Mapping[str, object]) -> Iterator[tuple[str, str | None, object]]:
    """(section, name, value) of all that is set; the name is None for what is no section of settings."""
    for section, entries in tables.items():
        if isinstance(entries, dict) and any(spec.section == section for spec in specs()):
            yield from ((section, name, value) for name, value in entries.items())
        else:
            yield section, None, entries


def _misplaced(section: str, name: str | None, value: object) -> str:
    """What is wrong with a setting of that name and value there; '' if nothing is with its place."""
    known = {name: spec for spec in specs() for name in (spec.name, *spec.other_names)}
    sections = {spec.section: spec for spec in specs()}
    if name is None and section in sections:
        return f"{section} has to be a section: [{section}]"
    if name is None:
        near = meant(section, sections) if isinstance(value, dict) else setting_meant(section, known)
        belongs = f"; it belongs in [{known[section].section}]" if section in known else near
        return f"{as_text(section)} is no section{belongs}"
    if name not in known:
        return f"[{section}] {as_text(name)} is no setting{setting_meant(name, known)}"
    return "" if known[name].section == section else f"[{section}] {name} belongs in [{known[name].section}]"


def _line(lines: Mapping[KeyPath, int], key: KeyPath) -> int:
    """Where a key stands, or the first that begins with it; for those of an inline table where that stands."""
    for length in range(len(key), 0, -1):
        within = [line for other, line in lines.items() if other[:length] == key[:length]]
        if within:
            return min(within)
    return 1


def _unquoted(part: str) -> str:
    """A part of a key, whichever way it is written."""
    return next(iter(tomllib.loads(f"{part} = 0"))) if part[0] in "\"'" else part


def _written(value: SettingValue) -> str:
    """A value as TOML; texts have no control characters, and so are written as in JSON."""
    return json.dumps(value, ensure_ascii=False)

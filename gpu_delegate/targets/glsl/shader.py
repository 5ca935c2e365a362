"""Loads shaders with their includes and parameters, and translates drivers' logs back to files and lines.

Shaders are valid GLSL as they are: `#define NAME default` lines give the defaults of parameters. But for their header,
which `for_es` changes, they are also valid in OpenGL ES from 3.10 on. Includes are resolved here. The lines of file
number K are numbered from K * 10000, since drivers do not report the number of the file, and a comment at the top of
the source lists the files.
"""

import re
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from importlib import resources

from ...base.errors import DeviceError

ParameterValue = str | int | float

_ES_TEXTURE_BUFFERS = ("GL_EXT_texture_buffer", "GL_OES_texture_buffer")  # part of the language from 3.20 on
_ES_TYPES = ("float", "int", "sampler2D", "image2D")  # whose precision has no default, or too low a one

_SHADERS = ".".join([*__name__.split(".")[:-4], "shaders"])  # next to the engine, installed or not
_INCLUDE = re.compile(r'\s*#include\s+"([\w.]+)"')
_DEFINE = re.compile(r"(\s*#define\s+)(\w+)(?!\()\b.*")
_FILE = re.compile(r"^// file (\d+): (\S+)$", re.M)
_FILE_LINES = 10000
_ERROR = re.compile(r"\berror\b", re.I)
_COMPLAINT = re.compile(r"(?:ERROR:\s*)?\d+[:(](\d+)\)?(?:\(\d+\))?\s*:?\s*(?:error\b)?\s*(.*)", re.I)


def load(name: str, defines: Mapping[str, ParameterValue] | None = None) -> str:
    """The source of shaders/NAME with its includes, each parameter of `defines` replacing its default.

    Raises ValueError for a parameter that no file defines, FileNotFoundError for a shader that does not exist.
    """
    files: list[str] = []
    left = dict(defines or {})
    body = _expand(name, {key: _literal(value) for key, value in left.items()}, files, left)
    if left:
        raise ValueError(f"shader {name} has no parameter {', '.join(sorted(left))}")
    listing = "".join(f"// file {number}: {file}\n" for number, file in enumerate(files))
    version, _, rest = body.partition("\n") if body.startswith("#version") else ("#version 430", "", body)
    return f"{version}\n{listing}#line {2 if rest is not body else 1}\n{rest}"


def for_es(source: str, version: tuple[int, int], extensions: Set[str] = frozenset()) -> str:
    """The same source for OpenGL ES of that version with these extensions: another header, the same lines.

    Raises ValueError for a source without `#version`.
    """
    first, _, rest = source.partition("\n")
    if not first.startswith("#version"):
        raise ValueError("a shader begins with #version")
    named = [] if version >= (3, 2) else sorted(name for name in extensions if name in _ES_TEXTURE_BUFFERS)[:1]
    types = [*_ES_TYPES, *(["samplerBuffer"] if named or version >= (3, 2) else [])]
    header = [
        f"#version {version[0]}{version[1]}0 es",
        *(f"#extension {name} : require" for name in named),
        *(f"precision highp {each};" for each in types),
    ]
    return "\n".join([*header, rest])


def with_extension(source: str, name: str) -> str:
    """The source with an extension of OpenGL required; as it is for what is part of a language."""
    version, _, rest = source.partition("\n")
    return f"{version}\n#extension {name} : require\n{rest}" if name.startswith("GL_") else source


def lines_of(name: str) -> list[str]:
    """The lines of shaders/NAME, which has no includes and no parameters, for a section of `fill`."""
    return _read(name).splitlines()


def explain_log(log: str, source: str, most: int = 3) -> str:
    """The first errors of a driver's log in one line, with the files and lines of `load`."""
    files = dict(_FILE.findall(source))
    complaints = []
    lines = [line for line in map(str.strip, log.splitlines()) if line]
    for line in [line for line in lines if _ERROR.search(line)] or lines:  # warnings may come first, and are many
        if found := _COMPLAINT.fullmatch(line):
            file, line_number = divmod(int(found[1]), _FILE_LINES)
            complaints.append(f"{files.get(str(file), file)}:{line_number}: {found[2].lstrip(': ')}")
        elif not complaints:
            complaints.append(line)
    return "; ".join(complaints[:most]) or "the driver gives no reason"


def _expand(name: str, literals: Mapping[str, str], files: list[str], left: dict[str, ParameterValue]) -> str:
    """One file with its includes; `files` collects names by number, parameters found are removed from `left`."""
    number = len(files)
    files.append(name)
    lines = []
    for at, line in enumerate(_read(name).splitlines(), 1):
        if not line.lstrip().startswith("#"):
            lines.append(line)
        elif include := _INCLUDE.match(line):
            if include[1] not in files:
                inner = _expand(include[1], literals, files, left)
                lines += [
                    f"#line {files.index(include[1]) * _FILE_LINES + 1}",
                    inner,
                    f"#line {number * _FILE_LINES + at + 1}",
                ]
            else:
                lines.append("")
        elif (define := _DEFINE.fullmatch(line)) and define[2] in literals:
            left.pop(define[2], None)
            lines.append(f"{define[1]}{define[2]} {literals[define[2]]}")
        else:
            lines.append(line)
    return "\n".join(lines)


@lru_cache(maxsize=64)
def _read(name: str) -> str:
    return resources.files(_SHADERS).joinpath(name).read_text(encoding="utf-8")


def _literal(value: ParameterValue) -> str:
    """A value as a GLSL literal: floats keep all digits and cannot be taken for integers."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise DeviceError(f"a shader cannot hold the value {value}")
        return repr(value)
    return str(value)


def fill(source: str, sections: Mapping[str, Sequence[str] | None]) -> str:
    """Replace the lines between `//@ NAME` and `//@ end` by generated ones; None keeps those that stand there.

    Raises ValueError for a section that the source does not have.
    """
    left = dict(sections)
    lines: list[str] = []
    skipping = False
    for line in source.splitlines():
        mark = line.strip().removeprefix("//@ ") if line.strip().startswith("//@ ") else None
        if mark == "end":
            skipping = False
        elif mark in left:
            generated = left.pop(mark)
            lines += generated or ()
            skipping = generated is not None
        elif not skipping:
            lines.append(line)
    if left:
        raise ValueError(f"the shader has no section {', '.join(left)}")
    return "\n".join(lines) + "\n"

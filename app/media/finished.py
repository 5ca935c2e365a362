"""Tags finished files and folders of pictures with what made them, and reads that tag.

Finished files end in a tag that players skip: a free box in mp4, a Void element in Matroska, a tEXt chunk in PNG.
It is written last, so that a file of a run that was killed, interrupted or cut off lacks it.
"""

import contextlib
import os
import re
import stat
import struct
import zlib

from texelflow.gpu_delegate.base.errors import UsageError

MOST_CHARACTERS = 200  # of what made a file

_MAGIC = b"texelflow finished\0"
_END = b"\n"
_TAIL_BYTES = 512  # more than any tag
_PNG_BEGINNING = b"\x89PNG\r\n\x1a\n"
_PNG_END = struct.pack(">I4sI", 0, b"IEND", zlib.crc32(b"IEND"))
_NUMBERED = re.compile(r"[0-9]{6,18}\.png")


def is_finished(path: str | os.PathLike[str]) -> bool:
    """Whether a video, a picture or a folder of numbered pictures was finished; false for all that is not ours.

    A video has a tag; a PNG file is whole, with or without one; a folder has a tag in its last picture. Never raises.
    """
    return _made_by(path) is not None or _is_whole_png(path)


def finished_by(path: str | os.PathLike[str]) -> str | None:
    """What made a finished file, as its writer was told; None without a tag. Never raises."""
    return _made_by(path)


def payload(made_by: str) -> bytes:
    """What a tag holds. Raises UsageError for text that is not printable ASCII or is too long."""
    if not (made_by.isascii() and (made_by.isprintable() or not made_by)) or len(made_by) > MOST_CHARACTERS:
        raise UsageError(f"what made a file is told in {MOST_CHARACTERS} printable ASCII characters at most")
    return _MAGIC + made_by.encode("ascii") + _END


def in_mp4(held: bytes) -> bytes:
    """A box that ends an mp4 or a QuickTime file."""
    return struct.pack(">I4s", 8 + len(held), b"free") + held


def in_matroska(held: bytes) -> bytes:
    """An element that ends a Matroska or a WebM file."""
    return b"\xec" + struct.pack(">Q", 1 << 56 | len(held)) + held


def in_png(held: bytes) -> bytes:
    """The chunks that end a PNG file."""
    chunk = b"tEXt" + held
    return struct.pack(">I", len(held)) + chunk + struct.pack(">I", zlib.crc32(chunk)) + _PNG_END


def tagged_png(data: bytes, made_by: str | None) -> bytes:
    """A PNG file with this tag in place of any other; None takes it away. What is no whole PNG stays as it is."""
    if not (data.startswith(_PNG_BEGINNING) and data.endswith(_PNG_END)):
        return data
    old = _told(data[-_TAIL_BYTES:])
    bare = data if old is None else data[: -len(in_png(payload(old)))] + _PNG_END
    return bare if made_by is None else bare[: -len(_PNG_END)] + in_png(payload(made_by))


def is_numbered(name: str) -> bool:
    """Whether a file of that name is one of a folder of numbered pictures."""
    return _NUMBERED.fullmatch(name) is not None


def numbered_pictures(folder: str | os.PathLike[str]) -> list[str]:
    """Names of PNG files that are numbers, in no order. Raises OSError."""
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries if is_numbered(entry.name)]


def last_picture(folder: str | os.PathLike[str]) -> str | None:
    """The path of the numbered picture with the highest number; None where there is none. Raises OSError."""
    names = numbered_pictures(folder)
    return os.path.join(folder, max(names, key=lambda name: (int(name[:-4]), name))) if names else None


def _made_by(path: str | os.PathLike[str]) -> str | None:
    with contextlib.suppress(OSError, ValueError):  # ValueError: NUL in a name
        named = last_picture(path) if os.path.isdir(path) else path
        return None if named is None else _told(_ends(named)[1])
    return None


def _is_whole_png(path: str | os.PathLike[str]) -> bool:
    with contextlib.suppress(OSError, ValueError):
        first, last = _ends(path)
        return first.startswith(_PNG_BEGINNING) and last.endswith(_PNG_END)
    return False


def _told(tail: bytes) -> str | None:
    """What the tag at the end of these bytes tells."""
    _, _, rest = tail.rpartition(_MAGIC)
    told, ended, _ = rest.partition(_END)
    if not ended or not told.isascii() or len(told) > MOST_CHARACTERS:
        return None
    held = _MAGIC + told + _END
    return told.decode("ascii") if tail.endswith((in_mp4(held), in_matroska(held), in_png(held))) else None


def _ends(path: str | os.PathLike[str]) -> tuple[bytes, bytes]:
    """The first and the last bytes of a regular file; nothing of anything else. Raises OSError."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe would wait
        return b"", b""
    with open(path, "rb") as file:
        first = file.read(len(_PNG_BEGINNING))
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        return first, file.read(_TAIL_BYTES)

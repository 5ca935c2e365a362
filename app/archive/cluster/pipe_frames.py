"""Messages through a pipe between two processes: each is a length and a pickle.

Both ends are this program, of one version, on one machine: each unpickles only what the process writes that it started,
or that started it.
"""

import pickle
import struct
from typing import Any, BinaryIO

_LENGTH = struct.Struct("<Q")
_MOST_BYTES = 1 << 28  # far more than any job, outcome or list


def send_frame(stream: BinaryIO, message: Any) -> None:
    """Raises OSError where nobody reads."""
    content = pickle.dumps(message)
    stream.write(_LENGTH.pack(len(content)) + content)
    stream.flush()


def receive_frame(stream: BinaryIO) -> Any:
    """Raises EOFError at the end, and where what comes is no frame."""
    head = stream.read(_LENGTH.size)
    size = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else 0
    content = stream.read(size) if 0 < size <= _MOST_BYTES else b""
    if not content or len(content) < size:
        raise EOFError
    return pickle.loads(content)

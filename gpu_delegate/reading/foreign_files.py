"""Tells, by what a file begins with, which other kind of file stands where a TensorFlow Lite model should, and what
converts it.

Nothing is read of them: whoever has such a file learns what makes a .tflite file of it.
"""

import re
from collections.abc import Collection
from pathlib import Path

__all__ = ["MOST_START", "foreign_archive", "foreign_file", "foreign_folder", "is_archive"]

MOST_START = 512  # bytes at a file's beginning that tell its kind

_KERAS = "tf.lite.TFLiteConverter.from_keras_model converts it"
_TORCH = "litert-torch (ai-edge-torch before) converts the module that it belongs to"
_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"\x89HDF\r\n\x1a\n", f"an HDF5 file, as Keras writes models or their weights; {_KERAS}"),
    (b"LITERTLM", "a language model with all it takes for LiteRT-LM, which runs it; a .tflite file is needed"),
    (b"GGUF", "weights of a language model for llama.cpp, which runs them; a .tflite file is needed"),
    (b"version https://git-lfs", "not the model but where Git LFS has it; `git lfs pull` fetches it"),
    (b"\x1f\x8b", "packed by gzip; unpack it (tar -xzf, or gunzip) and give the .tflite file in it"),
    (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19", f"a PyTorch file; {_TORCH}"),
)
_ONNX = "an ONNX model; onnx2tf converts it to a .tflite file"
_SAVED_MODEL = "a TensorFlow SavedModel; tf.lite.TFLiteConverter.from_saved_model converts its folder"
_FROZEN = "a frozen TensorFlow graph; tf.compat.v1.lite.TFLiteConverter.from_frozen_graph converts it"
_CORE_ML = "a Core ML model, which nothing converts; convert what it was made from"
_SAFETENSORS = "weights without their network (safetensors); the framework that they are for exports it"
_PAGE = "a web page, not a model; download the file that it is about"
_ARCHIVES, _MOST_ZEROS = (b"PK\3\4", b"PK\5\6"), 68
_PICKLE = re.compile(rb"\x80[\x02-\x05]")  # the beginning of what Python pickles


def foreign_file(start: bytes) -> str | None:
    """What the file is that begins so, and what converts it; None for what is not known, and for other archives.

    >>> foreign_file(b"GGUF")
    'weights of a language model for llama.cpp, which runs them; a .tflite file is needed'
    """
    for beginning, said in _BEGINNINGS:
        if start.startswith(beginning):
            return said
    if start.startswith(_ARCHIVES) and _is_written_by_torch(start):
        return f"a PyTorch file; {_TORCH}"
    if start[4:8] == b"ET12":
        return "an ExecuTorch program; litert-torch makes a .tflite file of the same module"
    if len(start) > 9 and start[8:9] == b"{" and start[9:].lstrip()[:1] in (b'"', b"}"):
        return _SAFETENSORS
    if start.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html")):
        return _PAGE
    if _PICKLE.match(start):
        return f"pickled by Python, as PyTorch stores weights; {_TORCH}"
    return _of_protobuf(start)


def foreign_archive(names: Collection[str]) -> str | None:
    """What a zip archive of files with these names is, and what converts it; None for what is not known."""
    last = {name.rpartition("/")[2] for name in names}
    if "data.pkl" in last:
        return f"a PyTorch file; {_TORCH}"
    if {"config.json", "model.weights.h5"} <= last:
        return f"a Keras model; {_KERAS}"
    if "saved_model.pb" in last:
        return f"packed: {_SAVED_MODEL}"
    return None


def foreign_folder(folder: Path) -> str | None:
    """The same of a folder."""
    if (folder / "saved_model.pb").is_file():
        return _SAVED_MODEL
    return _CORE_ML if folder.suffix.lower() == ".mlpackage" else None


def is_archive(start: bytes) -> bool:
    """Whether a file that begins so is a zip archive; MediaPipe's bundles align their first file with some zeros."""
    return start[:_MOST_ZEROS].lstrip(b"\0").startswith(_ARCHIVES)


def _of_protobuf(start: bytes) -> str | None:
    """ONNX's ModelProto, TensorFlow's SavedModel and GraphDef, Core ML's Model, by their first two fields.

    All but a GraphDef begin with a small number, their version, and differ in what follows: ONNX has the text of who
    made it, or a later field; a SavedModel, whose version is 1, and a Core ML model have a message.
    """
    if len(start) > 3 and start[0] == 0x08 and start[1] < 0x80:
        if start[2] != 0x12:  # field 2: of ONNX alone it may be missing
            return _ONNX if start[2] in (0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42, 0x72) else None
        inside = _after_length(start, 3)
        if start[inside : inside + 1] != b"\x0a":
            return _ONNX
        return _SAVED_MODEL if start[1] == 1 else _CORE_ML
    if start[:1] == b"\x0a":  # a NodeDef, which begins with its name, and goes on with its op's
        inside = _after_length(start, 1)
        name = _after_length(start, inside + 1)
        end = name + (start[inside + 1] if inside + 1 < len(start) else 0)
        if start[inside : inside + 1] == b"\x0a" and start[name:end].isascii() and start[end : end + 1] == b"\x12":
            return _FROZEN
    return None


def _after_length(start: bytes, at: int) -> int:
    """Where what follows a protobuf's length begins."""
    while at < len(start) and start[at] & 0x80:
        at += 1
    return at + 1


def _is_written_by_torch(start: bytes) -> bool:
    """By an archive's first file: its name, or what fills the space before its bytes. Its list of files is in ZIP64."""
    name_bytes = int.from_bytes(start[26:28], "little")
    return start[30 : 30 + name_bytes].endswith(b"/data.pkl") or start[30 + name_bytes :].startswith(b"FB")

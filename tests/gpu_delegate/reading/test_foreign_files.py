"""Files of other frameworks, as these write them: each is known by its content, and what converts it is named."""

import gzip
import io
import pickle
import zipfile
from pathlib import Path

import pytest

from texelflow.gpu_delegate.base.errors import ModelError
from texelflow.gpu_delegate.reading.bundles import model_file_bytes


def field(number: int, content: bytes) -> bytes:
    """Of a protobuf message."""
    size, length = len(content), b""
    while size >= 0x80:
        length, size = length + bytes([size & 0x7F | 0x80]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def zipped(*names: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(name, b"content")
    return stream.getvalue()


NODE = field(1, field(1, b"input") + field(2, b"Placeholder"))
MESSAGE = field(2, field(1, field(1, b"image") + b"x" * 300))

FILES = {
    "onnx": (b"\x08\x08" + field(2, b"pytorch") + field(3, b"2.1"), "onnx2tf converts it"),
    "onnx without a producer": (b"\x08\x0a" + field(7, field(1, b"node")), "onnx2tf converts it"),
    "saved_model.pb": (b"\x08\x01" + field(2, field(1, field(5, b"serve"))), "TFLiteConverter.from_saved_model"),
    "frozen.pb": (NODE * 3, "from_frozen_graph converts it"),
    "mlmodel": (b"\x08\x05" + MESSAGE, "Core ML model"),
    "h5": (b"\x89HDF\r\n\x1a\n" + bytes(40), "from_keras_model converts it"),
    "keras": (zipped("metadata.json", "config.json", "model.weights.h5"), "from_keras_model converts it"),
    "pt": (zipped("net/data.pkl", "net/byteorder", "net/data/0", "net/version"), "litert-torch"),
    "pt in ZIP64": (
        b"PK\3\4" + bytes(22) + b"\x08\0\x15\0net/data" + b"FB\x11\0" + b"Z" * 90,
        "litert-torch",
    ),
    "pth of before 2020": (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M", "litert-torch"),
    "pickle": (pickle.dumps({"weight": [1.0]}), "litert-torch"),
    "safetensors": (b'\x48\0\0\0\0\0\0\0{"a":{"dtype":"F32","shape":[2]}}', "weights without their network"),
    "litertlm": (b"LITERTLM" + bytes(24), "LiteRT-LM"),
    "gguf": (b"GGUF\3\0\0\0", "llama.cpp"),
    "pte": (b"\x30\0\0\0ET12" + bytes(20), "ExecuTorch"),
    "gzip": (gzip.compress(b"model"), "unpack it"),
    "Git LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:12\n", "git lfs pull"),
    "page": (b"\n<!DOCTYPE html>\n<html>", "a web page"),
}


@pytest.mark.parametrize("kind", FILES)
def test_the_line_names_what_converts_it(kind: str, tmp_path: Path) -> None:
    data, line = FILES[kind]
    path = tmp_path / "model.tflite"  # whatever its name says
    path.write_bytes(data)
    with pytest.raises(ModelError) as caught:
        model_file_bytes(path)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_of_a_saved_model(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").touch()
    with pytest.raises(ModelError, match="from_saved_model converts its folder"):
        model_file_bytes(tmp_path)

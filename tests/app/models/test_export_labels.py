"""Names of classes as YOLO's exporter writes them."""

import io
import json
import zipfile

import pytest

from texelflow.app.models.export_labels import exported_labels

NAMES = {0: "person", 1: "bicycle"}


def archived(name: str, text: str) -> bytes:
    stream = io.BytesIO(b"a model")
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr(name, text)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("metadata.json", json.dumps({"stride": 32, "names": NAMES})),
        ("temp_meta.txt", str({"stride": 32, "names": NAMES})),
        ("temp_meta.txt", str({"names": list(NAMES.values())})),
    ],
)
def test_names_are_read(name: str, text: str) -> None:
    assert exported_labels(archived(name, text)) == ("person", "bicycle")


@pytest.mark.parametrize(
    "data",
    [
        b"a model",
        archived("labels.txt", "person\nbicycle"),
        archived("metadata.json", "{"),
        archived("metadata.json", '{"names": {"0": "person", "2": "bicycle"}}'),
        archived("metadata.json", '{"names": ' + "[" * 60_000),
        archived("temp_meta.txt", "{'names': " + "(" * 60_000),
        archived("temp_meta.txt", "{'names': [1, 2]}"),
        archived("temp_meta.txt", "{'names': __import__('os')}"),
        archived("temp_meta.txt", "{1, 2}"),
        archived("temp_meta.txt", "{'names': {[]: 1}}"),
        archived("metadata.json", json.dumps({"names": ["x"] * 2000})),
    ],
)
def test_what_is_none_is_left_out(data: bytes) -> None:
    assert exported_labels(data) == ()

"""Names of files and addresses are told apart."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from texelflow.app.names import as_written, local_name, scheme_of


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("rtmp://host/x", "rtmp"), (" rtmp://host/x", "rtmp"), ("rtmp:host/x", "rtmp"), ("rtmp:\\\\h\\x", "rtmp"),
        ("1tmp://h/x", "1tmp"), ("r_t://h/x", "r_t"), ("pipe:1", "pipe"), ("RTSP:x", "RTSP"), ("concat:a|b", "concat"),
        ("s3:bucket", "s3"), ("data:image/png,abc", "data"), ("crypto+http:x", "crypto+http"), ("file:a.mp4", "file"),
        ("subfile,,start,1,end,9,,:a", "subfile,,start,1,end,9,,"), ("https:x", "https"), ("zmq:x", "zmq"),
    ],
)  # fmt: skip
def test_addresses(name: str, scheme: str) -> None:
    assert scheme_of(name) == scheme_of(Path(name)) == scheme
    assert as_written(Path(name)).strip() == name.strip()


@pytest.mark.parametrize(
    "name",
    ["talk:1.mp4", "Meeting 10:30.mp4", "C:\\x", "C:/x", "a/rtmp:x", "a/b://c", "rtmp", "/rtmp:x", "-", ":x", "smtp:x"],
)
def test_names_of_files(name: str) -> None:
    assert scheme_of(name) == scheme_of(Path(name)) == ""
    assert local_name(name) == name


def test_what_begins_with_a_dot_and_a_slash_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert local_name("./rtmp:x.mp4") == str(tmp_path / "rtmp:x.mp4")
    assert local_name("./a.mp4") == "./a.mp4"


@given(st.text(max_size=20))
def test_every_text_is_one_or_the_other(name: str) -> None:
    assert not scheme_of(local_name(f"./{name}")) or name.startswith("/")
    assert not scheme_of(name) or ":" in name
    as_written(name)

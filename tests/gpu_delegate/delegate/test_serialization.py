"""Serialized programs: one file of the caller's, with a directory, a token and the flag as in TensorFlow Lite."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.model_files.delegate_models import interpreter, run, three_partitions
from texelflow.gpu_delegate.delegate.delegate import GpuDelegate
from texelflow.gpu_delegate.delegate.delegate_options import GpuDelegateOptions
from texelflow.gpu_delegate.delegate.serialization import SerializedFile, join_entries, serialization_of, split_entries
from texelflow.gpu_delegate.saving import kept_graph as kept_graph_module
from texelflow.gpu_delegate.targets.gl import context as context_module
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.program_binary import binary_formats

VALUES = np.random.default_rng(5).normal(0, 1, (1, 5, 7, 3)).astype(np.float32)
FLAGS = ("enable_quant", "enable_serialization")


def computed(runtime: Any, folder: Path, **options: Any) -> np.ndarray[Any, Any]:
    """What a model of three partitions gives with a delegate that keeps its programs in a folder."""
    given = {"serialization_dir": folder, "model_token": "sums", "experimental_flags": FLAGS, **options}
    delegate = GpuDelegate(min_nodes_per_partition=1, strict=True, **given)
    output: np.ndarray[Any, Any] = run(interpreter(runtime, three_partitions(), delegate), VALUES)[0]
    assert len(delegate.partitions) == 3
    delegate.release()
    return output


def test_a_second_delegate_takes_its_programs_from_the_file(
    runtime: Any, context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = computed(runtime, tmp_path)
    (path,) = tmp_path.glob("*.bin")
    assert re.fullmatch(r"sums_[0-9a-f]{16}\.bin", path.name)
    content = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(kept_graph_module, "compile_graph", None)
        if binary_formats(context.gl):
            patch.setattr(context_module, "_linked", None)
        np.testing.assert_array_equal(computed(runtime, tmp_path), first)
    assert path.read_bytes() == content
    path.write_bytes(content[:-1])  # damaged: ignored and written anew
    np.testing.assert_array_equal(computed(runtime, tmp_path), first)
    assert path.read_bytes() == content


@pytest.mark.gl
@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"model_token": None}, "serialization_dir, model_token and the flag"),
        ({"experimental_flags": ("enable_quant",)}, "serialization_dir, model_token and the flag"),
        ({"serialization_dir": Path("nowhere")}, r"nowhere/sums_\w+.bin cannot be written \(no such directory\)"),
    ],
)
def test_where_nothing_is_kept_one_line_says_why(
    given: dict[str, Any], line: str, runtime: Any, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    computed(runtime, tmp_path, **given)
    assert re.search(f"^texelflow: programs are not serialized: .*{line}", capsys.readouterr().err, re.MULTILINE)
    assert not list(tmp_path.iterdir())


def test_entries_of_several_writers_stay_until_they_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "token_1.bin"
    assert SerializedFile(path).get("graphs", "a") is None
    assert SerializedFile(path).put_all([("graphs", "a", b"1"), ("binaries", "a", b"2")])
    assert SerializedFile(path).put_all([("graphs", "b", b"3")])
    file = SerializedFile(path)
    assert [file.get(*key) for key in (("graphs", "a"), ("binaries", "a"), ("graphs", "b"))] == [b"1", b"2", b"3"]
    monkeypatch.setattr("texelflow.gpu_delegate.delegate.serialization.MOST_FILE_BYTES", path.stat().st_size)
    assert file.put_all([("graphs", "c", b"4")])
    assert [SerializedFile(path).get("graphs", key) for key in "abc"] == [None, None, b"4"]


@given(st.binary(max_size=100), st.integers(0, 400))
@example(b"\xff" * 8, 21)
def test_no_bytes_of_a_file_are_an_error(new: bytes, at: int) -> None:
    entries = {("graphs", "a"): b"content", ("graphs", "b"): b"more"}
    data = join_entries(entries)
    assert split_entries(data) == entries
    found = split_entries(data[:at] + new + data[at + len(new) :])
    assert found is None or found.items() <= entries.items()


def test_another_device_or_option_has_a_file_of_its_own() -> None:
    given: dict[str, Any] = {"serialization_dir": "cache", "model_token": "token", "experimental_flags": FLAGS}
    names = set[str]()
    for option in ({}, {"is_precision_loss_allowed": True}, {"compile_budget_s": 3.0}, {"wait_type": "active"}):
        place = serialization_of(GpuDelegateOptions(**given, **option))
        assert place
        names |= {place.path("a driver").name, place.path("another").name}
    assert len(names) == 6, "how it is waited for changes no program"


@pytest.mark.parametrize("missing", ["serialization_dir", "model_token", "experimental_flags"])
def test_all_three_are_needed(missing: str) -> None:
    given: dict[str, Any] = {"serialization_dir": "cache", "model_token": "token", "experimental_flags": FLAGS}
    assert serialization_of(GpuDelegateOptions(**given))
    del given[missing]
    assert serialization_of(GpuDelegateOptions(**given)) is None
    assert GpuDelegateOptions(**given).is_serializing_in_part

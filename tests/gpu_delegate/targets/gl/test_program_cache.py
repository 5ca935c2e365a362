"""Compiled programs are loaded by the next start of the same driver; damaged or foreign ones are not."""

from pathlib import Path

import numpy as np
import pytest

import texelflow
from tests.helpers.commands import Command
from tests.helpers.markers import on_both_apis
from tests.helpers.saved_starts import small_network, start
from texelflow.gpu_delegate.base.disk_cache import DiskCache
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.saving import kept_graph as kept_graph_module
from texelflow.gpu_delegate.saving.kept_graph import kept_graph
from texelflow.gpu_delegate.targets.gl import program_cache as program_cache_module
from texelflow.gpu_delegate.targets.gl.context import Context, compile_compute
from texelflow.gpu_delegate.targets.gl.program_binary import binary_formats
from texelflow.gpu_delegate.targets.gl.program_cache import BINARIES, GRAPHS, VARIABLE, ProgramCache
from texelflow.gpu_delegate.targets.gl.runtime import device_of
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph


def binaries(context: Context) -> int:
    """How many of the network's programs a driver can load; some have no format, as Mesa's with its own cache off."""
    return len({kernel.source for kernel in compile_graph(small_network(), device_of(context)).kernels}) * bool(
        binary_formats(context.gl)
    )


@on_both_apis
def test_the_second_start_loads(context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = binaries(context)
    first = start(context, tmp_path)
    assert (first.loaded, first.loaded_graphs) == (0, 0)
    assert first.compiled
    monkeypatch.setattr(kept_graph_module, "compile_graph", None)
    second = start(context, tmp_path)
    assert second.counts == (known, first.compiled - known, 1)
    np.testing.assert_array_equal(second.output, first.output)
    assert sorted({entry.kind for entry in DiskCache(tmp_path).entries()}) == [BINARIES] * bool(known) + [GRAPHS]


def test_another_driver_graph_or_option_is_compiled(context: Context, tmp_path: Path) -> None:
    vendor, renderer, version = context.programs.driver
    first = start(context, tmp_path)
    for driver in ((vendor, renderer, version + " (updated)"), (vendor, "another GPU", version)):
        assert start(context, tmp_path, driver).counts == (0, first.compiled, 0)
    assert start(context, tmp_path, source=small_network(1)).loaded_graphs == 0
    assert start(context, tmp_path, keep_all=True).loaded_graphs == 0
    assert start(context, tmp_path).loaded_graphs == 1


@pytest.mark.parametrize("damage", ["bit", "cut off", "empty", "nothing known", "another format", "of another driver"])
def test_what_is_damaged_or_refused_is_compiled_and_replaced(context: Context, tmp_path: Path, damage: str) -> None:
    first, cache = start(context, tmp_path), DiskCache(tmp_path)
    for entry in cache.entries():
        data, content = entry.path.read_bytes(), cache.get(entry.kind, entry.key) or b""
        if damage in ("bit", "cut off"):  # of the file
            entry.path.write_bytes(data[:-1] + (bytes([data[-1] ^ 1]) if damage == "bit" else b""))
        else:  # with a checksum that is right
            wrong = {"empty": b"", "nothing known": bytes(64), "another format": b"\xfe\xca\xfe\xca" + content[4:]}
            cache.put(entry.kind, entry.key, wrong.get(damage, content[:4] + content[4:][::-1]))
    again = start(context, tmp_path)
    assert again.counts == (0, first.compiled, 0)
    np.testing.assert_array_equal(again.output, first.output)
    assert start(context, tmp_path).counts[::2] == (binaries(context), 1)


def test_it_can_be_turned_off(context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEXELFLOW_CACHE", str(tmp_path))
    for value, is_on in (("0", False), ("1", True)):
        monkeypatch.setenv(VARIABLE, value)
        programs = ProgramCache(context.gl, context.programs.driver)
        assert programs.is_on == is_on
        with programs.paused():
            kept_graph(programs, small_network(), SOFTWARE)
        assert programs.write()
        assert not DiskCache().entries()
    monkeypatch.setenv("DEBUG", "1")  # what the compiler says is to be seen
    kept_graph(programs, small_network(), SOFTWARE)
    assert programs.write()
    assert not DiskCache().entries()


def test_names_of_any_length_and_script_make_keys(context: Context, tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    for names in (("\N{BLACK STAR}" * 4000,) * 3, ('"\\' * 4000,) * 3, ("", "\udcff", "")):
        programs = ProgramCache(context.gl, names, cache)
        key, other = (programs.key_of(1, name=name) for name in (names[0], "other"))
        programs.add(GRAPHS, key, b"content")
        assert programs.write()
        assert programs.get(GRAPHS, key) == b"content"
        assert programs.get(GRAPHS, other) is None
        assert ProgramCache(context.gl, (*names[:2], names[2] + "newer"), cache).key_of(1, name=names[0]) != key


def test_what_waits_is_found_and_does_not_grow_without_end(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_cache_module, "_MOST_WAITING_BYTES", 1000)
    programs, cache = ProgramCache(context.gl, context.programs.driver, DiskCache(tmp_path)), DiskCache(tmp_path)
    for _ in range(30):
        programs.add(BINARIES, "again", bytes(100))
    assert programs.get(BINARIES, "again") == bytes(100)
    assert not cache.entries()
    for number in range(10):
        programs.add(BINARIES, str(number), bytes(100))
    assert {entry.key for entry in cache.entries()} == {"again", *map(str, range(10))}
    with programs.paused():
        assert programs.get(BINARIES, "again") is None


def test_where_nothing_can_be_kept_all_is_compiled(context: Context, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for _ in range(2):
        found = start(context, tmp_path / "file")
        assert (found.loaded, found.loaded_graphs) == (0, 0)
        assert found.compiled


def test_nobody_hears_of_a_refusal_but_of_what_was_before(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, cache = "#version 430\nlayout(local_size_x = 1) in;\nvoid main() {}\n", DiskCache(tmp_path)
    monkeypatch.setattr(context, "programs", ProgramCache(context.gl, context.programs.driver, cache))
    context.gl.glDeleteProgram(compile_compute(context, source, "nothing"))
    context.programs.write()
    for entry in cache.entries():
        cache.put(entry.kind, entry.key, (cache.get(entry.kind, entry.key) or b"")[:40])
    context._messages.waiting.append((0x824C, "slow"))
    context.gl.glDeleteProgram(compile_compute(context, source, "nothing"))
    assert context._messages.take() == [(0x824C, "slow")]
    assert context.gl.glGetError() == 0
    assert (context.programs.loaded, context.programs.compiled) == (0, 2)


@pytest.mark.gl
def test_the_library_and_the_verb_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TEXELFLOW_CACHE", str(tmp_path))
    monkeypatch.setenv(VARIABLE, "1")
    graph = small_network()
    model = texelflow.Model("small", (graph.tensors[0],), tuple(graph.tensors[i] for i in graph.outputs), graph)
    counts = []
    for _ in range(2):
        with texelflow.Program(model, quiet=True) as program:
            programs, known = program._context.programs, binaries(program._context)
        counts.append((programs.loaded, programs.compiled, programs.loaded_graphs))
    assert counts == [(0, counts[0][1], 0), (known, counts[0][1] - known, 1)]
    listed = Command(capsys)("cache", "list").out
    assert " graphs " in listed
    assert listed.count(" binaries ") == bool(known), "one row for all programs of a driver"
    assert f"{known} program" in listed or not known

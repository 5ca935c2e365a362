"""Compiled models in the cache on disk: the next start takes them, and nothing damaged, stale or foreign."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_files.graphs import GraphBuilder
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.base.disk_cache import CacheEntry, DiskCache
from texelflow.gpu_delegate.model.graph import Activated, Graph, Reduce
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.llvm import loading, native_program
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.image import NativeImage, parse_image
from texelflow.gpu_delegate.targets.llvm.loading import load_image
from texelflow.gpu_delegate.targets.llvm.machine import CpuTarget
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork


def means(factor: float, channels: int = 3) -> Graph:
    """The means of some channels times a constant."""
    g, shape = GraphBuilder(), (1, 1, 1, channels)
    mean = g.node("MEAN", [g.input(1, 5, 7, channels)], shape, Reduce((1, 2), True))
    return g.graph(g.node("MUL", [mean, g.constant(np.full(shape, factor, np.float32))], shape, Activated()))


X = np.random.default_rng(1).standard_normal((1, 5, 7, 3)).astype(np.float32)


def kept(cache: DiskCache, kind: str) -> CacheEntry:
    """The one entry of a kind."""
    (entry,) = (entry for entry in cache.entries() if entry.kind == kind)
    return entry


@pytest.fixture
def cache(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path)


@pytest.fixture(scope="module")
def target() -> CpuTarget:
    return native_target()


@pytest.fixture(scope="module")
def image(target: CpuTarget, tmp_path_factory: pytest.TempPathFactory) -> NativeImage:
    return load_image(means(2), target, 2, DiskCache(tmp_path_factory.mktemp("cache")))[0]


def test_a_kept_model_starts_without_being_compiled(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.MonkeyPatch.context() as patch:
        first = NativeNetwork.load(means(2), 2, cache=cache)
        entry = kept(cache, "networks")
        assert entry.key.split()[1:4] == [native_target().name, "2", "threads"]
        patch.setattr(loading, "compile_native", None)
        second = NativeNetwork.load(means(2), 2, cache=cache)
    (wanted,), (found,) = first.run(X), second.run(X)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_allclose(found.ravel(), 2 * X.mean((0, 1, 2)), rtol=1e-5, atol=1e-6)
    first.close()
    second.close()


def test_functions_are_compiled_while_others_are_written(cache: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    sketch = Sketch(5)
    x = sketch.depthwise(sketch.conv(sketch.image(5, 7, 3), 8, (3, 3)))
    sketch.output(sketch.connected(sketch.mean(x, keep_dims=False), 9))
    graph = read_model(sketch.build())
    together = NativeNetwork.load(graph, 1, cache=DiskCache(cache.folder))
    monkeypatch.setattr(native_program, "TOLD_BYTES", 1)
    apart = [NativeNetwork.load(graph, 1, cache=cache) for _ in range(2)]  # the second is a kept one
    symbols = {step.symbol for step in apart[0].image.steps}
    for network, files in ((together, 1), *((each, len(symbols)) for each in apart)):
        assert len(network.image.objects) == files
        np.testing.assert_array_equal(network.run(X)[0], together.run(X)[0])
    assert apart[0].image.objects == apart[1].image.objects


def test_another_model_machine_or_number_of_threads_has_its_own(cache: DiskCache, target: CpuTarget) -> None:
    for graph, kind, threads in (
        (means(2), target, 1), (means(3), target, 1), (means(2), replace(target, features=""), 1), (means(2), target, 3)
    ):  # fmt: skip
        load_image(graph, kind, threads, cache)
    assert Counter(entry.kind for entry in cache.entries()) == {"networks": 4, "weights": 2}


def test_weights_are_the_files_own_memory(cache: DiskCache, target: CpuTarget) -> None:
    """Aligned, with margins that may be read, and nowhere else; images for other numbers of threads have the same."""
    first, _ = load_image(means(2), target, 1, cache)
    for threads in (1, 2):
        found, _ = load_image(means(2), target, threads, cache)
        np.testing.assert_array_equal(found.weights, first.weights)
    again, _ = load_image(means(2), target, 2, cache)
    assert not again.weights.flags.writeable
    assert not again.weights.flags.owndata
    assert again.weights.ctypes.data % 64 == 0


def test_a_model_as_large_as_the_cache_drives_out_nothing(tmp_path: Path, target: CpuTarget) -> None:
    large, _ = load_image(means(2, 4000), target, 1, DiskCache(tmp_path / "usual"))
    cache = DiskCache(tmp_path / "small", most_bytes=2 * large.weights.nbytes - 2)
    assert cache.put("tuning", "a key", b"content")
    load_image(means(2, 4000), target, 1, cache)
    assert [entry.kind for entry in cache.entries()] == ["tuning"]


@pytest.mark.parametrize("how", ["gone", "cut off", "none"])
def test_without_its_weights_a_model_is_made_anew(how: str, cache: DiskCache, target: CpuTarget) -> None:
    load_image(means(2), target, 1, cache)
    entry = kept(cache, "weights")
    good = entry.path.read_bytes()
    if how == "gone":
        entry.path.unlink()
    elif how == "cut off":
        entry.path.write_bytes(good[:-5])
    else:
        cache.put("weights", entry.key, b"")
    network = NativeNetwork.load(means(2), 1, cache=cache)
    np.testing.assert_allclose(network.run(X)[0].ravel(), 2 * X.mean((0, 1, 2)), rtol=1e-5, atol=1e-6)
    assert entry.path.read_bytes() == good


@pytest.mark.parametrize("how", ["cut off", "no image", "no code"])
def test_what_is_damaged_is_made_anew(how: str, cache: DiskCache, target: CpuTarget) -> None:
    load_image(means(2), target, 1, cache)
    entry = kept(cache, "networks")
    good = cache.get(entry.kind, entry.key)
    assert good is not None
    if how == "cut off":
        entry.path.write_bytes(entry.path.read_bytes()[:-5])
    elif how == "no image":
        cache.put(entry.kind, entry.key, b"nothing")
    else:
        at = good.index(b"\x7fELF")
        cache.put(entry.kind, entry.key, good[:at] + b"\x7fEVE" + good[at + 4 :])
    load_image(means(2), target, 1, cache)
    assert cache.get(entry.kind, entry.key) == good


def test_an_image_comes_back_from_its_bytes(image: NativeImage) -> None:
    again = parse_image(image.to_bytes(), {image.weights_digest: image.weights}.get)
    assert again is not None
    assert replace(again, weights=image.weights) == image
    np.testing.assert_array_equal(again.weights, image.weights)


@pytest.mark.parametrize("faults", ["[]", '""', "[0]", "[1]"])
def test_a_description_that_lacks_something_is_none(faults: str, image: NativeImage) -> None:
    good = image.to_bytes()
    end = 8 + int.from_bytes(good[:8], "little")
    head = good[8:end].replace(b'"faults": null', f'"faults": {faults}'.encode())
    assert head != good[8:end]
    found = parse_image(len(head).to_bytes(8, "little") + head + good[end:], {image.weights_digest: image.weights}.get)
    assert found is None


@settings(max_examples=150)
@given(st.integers(0, 2000), st.binary(min_size=1, max_size=12), st.integers(0, 12))
def test_bytes_that_are_no_image_are_none(image: NativeImage, at: int, new: bytes, dropped: int) -> None:
    """Or still one with every place within what is there."""
    good = image.to_bytes()
    found = parse_image(good[:at] + new + good[at + dropped :], {image.weights_digest: image.weights}.get)
    if found is not None:
        ends = {True: found.weights.size, False: found.arena_floats}
        assert all(0 <= place <= ends[own] for step in found.steps for own, place in step.tensors)

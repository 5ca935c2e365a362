"""WeightsCache: instances share what they can, compute the same, and the last one frees it."""

import gc
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import moderngl
import numpy as np
import numpy.typing as npt
import pytest

import texelflow
from tests.helpers.delegated import inferred, interpreter_of
from tests.helpers.gpu_resets import GpuResets
from tests.helpers.markers import exhaustive
from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.model.graph import Hybrid
from texelflow.gpu_delegate.targets.gl.context import Context, compile_compute

pytestmark = pytest.mark.gl

Floats = npt.NDArray[np.float32]

SHAPE = (1, 9, 7, 3)
NOT_YET = "call finalize_soft\\(\\) or finalize_hard\\(\\) of the WeightsCache before the first inference"


def network(*seeds: int, depth: int = 6, side: int = 9) -> bytes:
    """Convolutions one behind the other, whose weights lie in buffers; a seed for those of each."""
    model = ModelBuilder()
    x, channels = model.input((1, side, 7, 3)), 3
    for number, seed in enumerate(seeds):
        rng, wide = np.random.default_rng(seed), 3 if number == len(seeds) - 1 else depth
        weights = [model.constant(rng.normal(size=(wide, 3, 3, channels))), model.constant(rng.normal(size=wide))]
        options: dict[str, Any] = {"padding": "SAME", "stride": (1, 1), "activation": "NONE"}
        x, channels = model.op("CONV_2D", [x, *weights], (1, side, 7, wide), **options), wide
    model.output(x)
    return model.build()


def load(folder: Path, data: bytes, name: str = "net") -> texelflow.Model:
    path = folder / f"{name}.tflite"
    path.write_bytes(data)
    return texelflow.Model.load(path)


def noise(seed: int = 0, shape: tuple[int, ...] = SHAPE) -> Floats:
    return np.random.default_rng(seed).random(shape, np.float32)


def results(programs: Sequence[texelflow.Program]) -> list[bytes]:
    """Each with an input of its own; all are written before any runs, and all run before any is read."""
    for number, program in enumerate(programs):
        program.write(program.model.inputs[0], noise(number, program.model.inputs[0].shape))
    for program in programs:
        program.run()
    return [program.read(program.model.outputs[0]).tobytes() for program in programs]


def alone(model: texelflow.Model, count: int) -> list[bytes]:
    """The same of programs that share nothing."""
    found = []
    for number in range(count):
        with texelflow.Program(model) as program:
            program.write(model.inputs[0], noise(number, model.inputs[0].shape))
            program.run()
            found.append(program.read(model.outputs[0]).tobytes())
    return found


@pytest.fixture
def cache() -> texelflow.WeightsCache:
    return texelflow.WeightsCache()


@pytest.fixture
def own() -> Iterator[moderngl.Context]:
    """Somebody's own context, current in this thread."""
    egl: Any = {"backend": "egl"}
    gl = moderngl.create_context(standalone=True, require=430, **egl)
    yield gl
    gl.release()


def test_instances_share_weights_code_and_memory_and_compute_the_same(
    tmp_path: Path, cache: texelflow.WeightsCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []

    def counting(context: Context, source: str, label: str) -> int:
        compiled.append(label)
        return compile_compute(context, source, label)

    monkeypatch.setattr("texelflow.gpu_delegate.targets.gl.gl_store.compile_compute", counting)
    model = load(tmp_path, network(1, 2, 3))
    programs = [texelflow.Program(model, weights_cache=cache)]
    first, kernels = (cache.weights_bytes, cache.arena_bytes), len(compiled)
    assert min(first) > 0
    programs.append(texelflow.Program(load(tmp_path, network(1, 2, 3), "copy"), weights_cache=cache))
    with pytest.raises(texelflow.UsageError, match=NOT_YET):
        programs[0].run()
    cache.finalize_soft()
    programs.append(texelflow.Program(model, weights_cache=cache))
    assert (cache.weights_bytes, cache.arena_bytes) == first
    assert len(compiled) == kernels
    border_bytes = 2 * -(-np.prod(SHAPE[:3]) * 16 // 256) * 256
    assert all(program._program.tensor_bytes <= border_bytes for program in programs)
    assert results(programs) == alone(model, 3)
    for program in programs:
        assert cache.weights_bytes == first[0]
        program.close()
    assert (cache.weights_bytes, cache.arena_bytes) == (0, 0)


def test_what_was_not_there_when_it_was_finalized_is_refused_by_name(
    tmp_path: Path, cache: texelflow.WeightsCache
) -> None:
    model = load(tmp_path, network(1, 2))
    with pytest.raises(texelflow.UsageError, match="there is nothing in this WeightsCache"):
        cache.finalize_soft()
    with texelflow.Program(model, weights_cache=cache) as program:
        cache.finalize_soft()
        others = {
            "long.tflite is another model than net.tflite": load(tmp_path, network(1, 2, 3), "long"),
            "the weight tensor4 of changed.tflite is not the one": load(tmp_path, network(1, 4), "changed"),
        }
        for text, other in others.items():
            with pytest.raises(texelflow.UsageError, match=text):
                texelflow.Program(other, weights_cache=cache)
        layout = "" if "llvmpipe" in program.renderer else "(, another layout)?"
        with pytest.raises(texelflow.UsageError, match=rf"net.tflite is in it with precision fp32, not fp16{layout}$"):
            texelflow.Program(model, weights_cache=cache, precision="fp16")
        graph = replace(model._graph, hybrid="reference")
        with pytest.raises(texelflow.UsageError, match=r"net\.tflite is in it with hybrid expanded, not reference"):
            cache._sharing.shared(graph, {}, lambda: None)
        cache.finalize_hard()
        for refused in (lambda: texelflow.Program(model, weights_cache=cache), cache.finalize_soft):
            with pytest.raises(texelflow.UsageError, match="it takes no further instance"):
                refused()
        results([program])
    with pytest.raises(texelflow.UsageError, match="weights_cache is a WeightsCache, not str"):
        texelflow.Program(model, weights_cache="cache")  # type: ignore[arg-type]


def test_a_changed_weight_is_named_where_a_model_is_there_in_both_ways(
    tmp_path: Path, cache: texelflow.WeightsCache
) -> None:
    graphs = [load(tmp_path, network(1, seed), f"net{seed}")._graph for seed in (2, 4)]
    for hybrid in get_args(Hybrid):
        cache._sharing.shared(replace(graphs[0], hybrid=hybrid), {}, lambda: None)
    cache.finalize_soft()
    for hybrid in get_args(Hybrid):
        with pytest.raises(texelflow.UsageError, match=r"the weight tensor4 of net4\.tflite is not the one"):
            cache._sharing.shared(replace(graphs[1], hybrid=hybrid), {}, lambda: None)


def test_equal_layers_of_different_models_share_weights(tmp_path: Path, cache: texelflow.WeightsCache) -> None:
    models = [load(tmp_path, network(1, seed), str(seed)) for seed in (2, 3)]
    with texelflow.Program(models[0], weights_cache=cache) as first:
        one = cache.weights_bytes
        with texelflow.Program(models[1], weights_cache=cache) as second:
            assert one < cache.weights_bytes < 2 * one
            cache.finalize_soft()
            assert results([first, second]) == [alone(models[0], 1)[0], alone(models[1], 2)[1]]
        assert cache.weights_bytes == one
        assert results([first]) == alone(models[0], 1)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_all_is_freed_with_the_last_instance_whichever_that_is(
    tmp_path: Path, cache: texelflow.WeightsCache, own: moderngl.Context, order: Sequence[int]
) -> None:
    model = load(tmp_path, network(1, 2))
    programs = [texelflow.Program(model, own, weights_cache=cache) for _ in order]
    cache.finalize_soft()
    gl, buffers = programs[0]._context.gl, {program._program._weights[0].buffer for program in programs}
    (weights,) = buffers
    for number in order:
        assert gl.glIsBuffer(weights)
        assert len(set(results([p for p in programs if p._opened])[:1])) == 1
        programs[number].close()
    assert not gl.glIsBuffer(weights)
    with texelflow.Program(model, own, weights_cache=cache) as program:  # what it takes is still known
        assert results([program]) == alone(model, 1)
    assert not cache.weights_bytes


def test_threads_with_contexts_of_their_own_share(tmp_path: Path, cache: texelflow.WeightsCache) -> None:
    """The context that has made the weights goes first."""
    model, found, steps = load(tmp_path, network(1, 2)), dict[int, Any](), threading.Barrier(3)

    def use(number: int) -> None:
        for turn in range(2):
            if turn == number:
                program = texelflow.Program(model, weights_cache=cache)
            steps.wait()
        steps.wait()  # until it is finalized
        if number == 0:
            program.close()
        steps.wait()
        if number == 1:
            found[number] = results([program]), program._program._weights[0].buffer
            program.close()
        steps.wait()

    threads = [threading.Thread(target=use, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    steps.wait()
    one = cache.weights_bytes
    steps.wait()
    assert cache.weights_bytes == one > 0
    cache.finalize_hard()
    for _ in range(3):
        steps.wait()
    for thread in threads:
        thread.join()
    assert found[1][0] == alone(model, 1)
    assert not cache.weights_bytes


def test_the_memory_that_they_take_turns_in_grows_and_shrinks_with_its_users(
    tmp_path: Path, cache: texelflow.WeightsCache
) -> None:
    small, large = load(tmp_path, network(1, 2, 3)), load(tmp_path, network(4, 5, side=33), "large")
    with texelflow.Program(small, weights_cache=cache) as first:
        before = cache.arena_bytes
        second = texelflow.Program(large, weights_cache=cache)
        cache.finalize_soft()
        assert cache.arena_bytes > before
        for _ in range(2):
            assert results([first, second, first]) == [alone(small, 3)[2], alone(large, 2)[1], alone(small, 3)[2]]
        second.close()
        assert cache.arena_bytes == before
        assert results([first]) == alone(small, 1)


def test_a_gpu_that_is_reset_takes_nothing_from_further_instances(
    tmp_path: Path, cache: texelflow.WeightsCache, gpu: GpuResets
) -> None:
    model = load(tmp_path, network(1, 2))
    lost = texelflow.Program(model, weights_cache=cache)
    cache.finalize_soft()
    gpu.reset()
    with pytest.raises(texelflow.ContextLostError):
        results([lost])
    with texelflow.Program(model, weights_cache=cache) as program:
        assert program._context is not lost._context
        assert results([program]) == alone(model, 1)
        lost.close()
        assert cache.weights_bytes > 0


def test_weights_are_compared_after_a_suspend_as_long_as_one_uses_them(
    tmp_path: Path, cache: texelflow.WeightsCache
) -> None:
    model = load(tmp_path, network(1, 2))
    with texelflow.Program(model, weights_cache=cache) as program:
        texelflow.Program(model, weights_cache=cache).close()
        resets, readback = program._context.resets, program._context.readback
        before_s, before = resets.slept_s(), readback.bytes
        resets.slept_s = lambda: before_s + 60
        resets.check_now()
        assert readback.bytes - before == cache.weights_bytes


def test_no_weights_stay_in_ram_after_finalize_hard(tmp_path: Path, cache: texelflow.WeightsCache) -> None:
    with texelflow.Program(load(tmp_path, network(1, 2)), weights_cache=cache) as program:
        (entry,) = cache._sharing._models._entries
        plan, weights = weakref.ref(entry.made), program._program.compiled.kernels[0].weights
        del entry
        assert weights.size
        assert not any(weights.strides)
        cache.finalize_soft()
        gc.collect()
        assert plan()
        cache.finalize_hard()
        gc.collect()
        assert not plan()
        results([program])


def test_delegates_share_a_thread_and_what_lies_in_its_context(cache: texelflow.WeightsCache, runtime: Any) -> None:
    gc.collect()  # delegates of other tests
    model, before = network(1, 2, 3), {*threading.enumerate()}
    delegates = [texelflow.GpuDelegate(model=model, weights_cache=cache, min_nodes_per_partition=1) for _ in range(3)]
    interpreters = [interpreter_of(model, delegates[0])]
    weights = cache.weights_bytes
    interpreters.append(interpreter_of(model, delegates[1]))
    with pytest.raises(RuntimeError, match=NOT_YET):
        inferred(interpreters[0], [noise()])
    cache.finalize_soft()
    interpreters.append(interpreter_of(model, delegates[2]))
    assert [thread.name for thread in {*threading.enumerate()} - before] == ["texelflow OpenGL"]
    assert cache.weights_bytes == weights > 0
    with texelflow.GpuDelegate(model=model, min_nodes_per_partition=1) as apart:
        (expected,) = inferred(interpreter_of(model, apart), [noise()])
    assert all(inferred(each, [noise()])[0].tobytes() == expected.tobytes() for each in interpreters)
    other = texelflow.GpuDelegate(model=network(1, 2, 4), weights_cache=cache, strict=True)
    with pytest.raises((RuntimeError, ValueError), match="the weight tensor7 of model is not the one"):
        interpreter_of(network(1, 2, 4), other)
    for delegate in (*delegates, other):
        delegate.release()
    assert not cache.weights_bytes


@exhaustive
@pytest.mark.parametrize("choice", [{"backend": "gl"}, {"backend": "cpu", "cpu": "native", "threads": 1}])
def test_segmenters_share(tmp_path: Path, cache: texelflow.WeightsCache, choice: dict[str, Any]) -> None:
    path, frame = tmp_path / "net.tflite", np.random.default_rng(0).integers(0, 256, (20, 30, 3), np.uint8)
    path.write_bytes(network(1, 2, side=7))
    options: dict[str, Any] = {"activation": "none", "channel": 1, "input_range": (0, 1), **choice}
    made = [texelflow.Segmenter(path, weights_cache=cache, **options) for _ in range(2)]
    with pytest.raises(texelflow.UsageError, match=NOT_YET):
        made[0](frame)
    cache.finalize_soft()
    made.append(texelflow.Segmenter(path, weights_cache=cache, **options))
    other = {"gl": "cpu", "cpu": "gl"}[choice["backend"]]
    with pytest.raises(texelflow.UsageError, match="is in it with backend"):
        texelflow.Segmenter(path, **{**options, "backend": other, "cpu": "native"}, weights_cache=cache)
    with texelflow.Segmenter(path, **options) as apart:
        assert {segment(frame).tobytes() for segment in made} == {apart(frame).tobytes()}
    if choice["backend"] == "cpu":
        jobs: list[Any] = [segment._work.job for segment in made]
        networks = [job.network.__self__._network for job in jobs]
        assert len({id(each.image.weights) for each in networks}) == 1
    made.pop(1).close()
    assert (cache.weights_bytes > 0) == (choice["backend"] == "gl")
    for segment in made:
        segment.close()
    assert not cache.weights_bytes

"""Decoders of transformers run whole, with a cache that two signatures share, and give TensorFlow Lite's scores."""

from dataclasses import replace

import numpy as np
import pytest

import texelflow
from tests.helpers.decoding import Scores, drawn_tokens, stream_of
from tests.helpers.delegated import interpreter_of
from tests.helpers.markers import exhaustive, one_in
from tests.model_files.decoder_models import Decoder, decoder_model
from texelflow.gpu_delegate.delegate.native_delegate import NativePartsDelegate
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.feedback import with_feedback
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

SMALL = Decoder(layers=2, width=36, heads=3, groups=1, hidden=50, vocabulary=101, positions=29, prompt=7, seed=2)
FORMS = {
    "variables": SMALL,
    "variables, positions first": replace(SMALL, heads_first=False, table=True),
    "fed back": replace(SMALL, cache="fed back", groups=3),
    "fed back, positions first": replace(SMALL, cache="fed back", width=48, groups=3, heads_first=False),
}
LARGE = Decoder(layers=4, width=256, heads=8, groups=2, hidden=512, vocabulary=4000, positions=256, prompt=32)


def check_whole(decoder: Decoder, kind: str, count: int) -> None:
    """Each signature is one partition, and scores are TensorFlow Lite's behind each token."""
    model, tokens = decoder_model(decoder), drawn_tokens(decoder, count)
    wanted = stream_of(decoder, interpreter_of(model, xnnpack=False), tokens)
    delegate = (
        texelflow.GpuDelegate(strict=True, quiet=True)
        if kind == "gl"
        else NativePartsDelegate(threads=1, every_part=True)
    )
    found = stream_of(decoder, interpreter_of(model, delegate, xnnpack=False), tokens)
    assert [len(each.nodes) for each in delegate.partitions] == [
        len(read_model(model, subgraph=number).nodes) for number in range(2)
    ]
    check_alike(found, wanted)
    delegate.release()


def check_alike(found: list[Scores], wanted: list[Scores]) -> None:
    for step, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        np.testing.assert_allclose(ours, theirs, atol=1e-5 * float(np.ptp(theirs)), err_msg=f"step {step}")


@pytest.mark.gl
@one_in(2, "form", FORMS)
def test_a_decoder_runs_whole_on_the_gpu(form: str) -> None:
    check_whole(FORMS[form], "gl", 20)


@one_in(2, "form", reversed(FORMS))
def test_a_decoder_runs_whole_in_native_code(form: str) -> None:
    check_whole(FORMS[form], "native", 20)


@pytest.mark.gl
@exhaustive
@pytest.mark.parametrize("kind", ["gl", "native"])
def test_a_larger_decoder_runs_whole_over_a_stream(kind: str) -> None:
    check_whole(LARGE, kind, 200)


def test_a_cache_that_is_fed_back_is_written_where_it_lies() -> None:
    decoder = FORMS["fed back, positions first"]
    graph = read_model(decoder_model(decoder), subgraph=1)
    fed = with_feedback(graph, dict(zip(graph.inputs[2:], graph.outputs[1:], strict=True)))
    compiled = compile_graph(fed, SOFTWARE)
    places = compiled.plan.places
    assert len(compiled.graph.states) == len(decoder.caches)
    assert all(places[state.read] == places[state.written] for state in compiled.graph.states)


def test_tokens_beyond_the_vocabulary_are_refused() -> None:
    decoder, tokens = FORMS["variables"], np.full(7, 101, np.int32)
    delegate = NativePartsDelegate(threads=1, every_part=True)
    with pytest.raises((RuntimeError, ValueError), match="index out of bounds"):
        stream_of(decoder, interpreter_of(decoder_model(decoder), delegate, xnnpack=False), tokens)
    delegate.release()

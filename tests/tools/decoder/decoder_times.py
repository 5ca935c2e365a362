"""Measures tokens a second of a drawn decoder, by each way of running it in turn, and counts its work."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter, sleep
from typing import Any

import numpy as np

import texelflow
from tests.helpers.decoding import Decoding, Scores, drawn_tokens
from tests.model_files.decoder_models import Decoder, decoder_model
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.wording import counted
from texelflow.gpu_delegate.cpu.reference import load_interpreter_module
from texelflow.gpu_delegate.delegate.native_delegate import NativePartsDelegate
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import ABSENT
from texelflow.gpu_delegate.model.layout import shape_of
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork

DecoderRow = dict[str, Any]
SIGNATURES = ("prefill", "decode")
_PAUSE_S = 50e-3  # until the threads of the one before sleep
_MOST_LAYERS, _MOST_SIZE = 64, 1 << 16


@dataclass(frozen=True)
class DecoderBench:
    """What the tool is asked to do."""

    decoder: Decoder
    tokens: int = 64  # behind a prompt
    rounds: int = 5
    threads: tuple[int, ...] = (1, 2)
    kinds: tuple[str, ...] = ("OpenGL", "native code", "XNNPACK")


@dataclass
class _Entrant:
    name: str
    decoding: Decoding
    prompt_s: list[float] = field(default_factory=list)
    tokens_s: list[float] = field(default_factory=list)  # of all tokens behind a prompt
    scores: Scores | None = None  # behind the last one


def check_sizes(bench: DecoderBench) -> None:
    """Raises UsageError for sizes that make no decoder."""
    d = bench.decoder
    sizes = {name: value for name, value in vars(d).items() if isinstance(value, int) and name != "seed"}
    sizes |= {"tokens": bench.tokens, "rounds": bench.rounds}
    for name, value in sizes.items():
        if not isinstance(value, bool) and not 1 <= value <= (_MOST_LAYERS if name == "layers" else _MOST_SIZE):
            raise UsageError(f"--{name} {value}: a number from 1 on is needed, and not that many")
    if d.width % d.heads or d.depth % 2 or d.heads % d.groups:
        raise UsageError(f"a width of {d.width}, {d.heads} heads and {d.groups} groups: heads have an even depth")
    if d.prompt + bench.tokens > d.positions:
        raise UsageError(f"{d.prompt} and {bench.tokens} tokens need a cache of as many positions, not {d.positions}")


def bench_decoder(bench: DecoderBench, say: Callable[[str], object]) -> list[DecoderRow]:
    """A row for each way. Raises UsageError for sizes, DeviceError without OpenGL, LLVM or TensorFlow Lite."""
    check_sizes(bench)
    model, tokens = decoder_model(bench.decoder), drawn_tokens(bench.decoder, bench.tokens)
    size = bench.decoder.prompt
    with ExitStack() as stack:
        entrants = [_Entrant(name, made) for name, made in _entrants(bench, model, stack)]
        for number in range(bench.rounds + 1):  # the first one warms up
            say(f"round {number} of {bench.rounds}")
            for each in entrants:
                sleep(_PAUSE_S)
                begun = perf_counter()
                each.decoding.prompt(tokens[:size])
                between = perf_counter()
                for token in tokens[size:]:
                    each.scores = each.decoding.token(token)
                if number:
                    each.prompt_s.append(between - begun)
                    each.tokens_s.append(perf_counter() - between)
    return [_row(each, bench, entrants[-1]) for each in entrants]


def _row(each: _Entrant, bench: DecoderBench, judge: _Entrant) -> DecoderRow:
    """The difference is that of the last scores to the last way's, of their range."""
    assert each.scores is not None
    assert judge.scores is not None
    return {
        "way": each.name,
        "prefill_tokens_a_second": round(bench.decoder.prompt / median(each.prompt_s), 1),
        "decode_tokens_a_second": round(bench.tokens / median(each.tokens_s), 1),
        "difference": float(np.abs(each.scores - judge.scores).max() / np.ptp(judge.scores)),
    }


def _entrants(bench: DecoderBench, model: bytes, stack: ExitStack) -> Iterator[tuple[str, Decoding]]:
    for kind in bench.kinds:
        for threads in bench.threads if kind != "OpenGL" else (1,):
            delegates: list[Any] = []
            if kind == "OpenGL":
                delegates.append(stack.enter_context(texelflow.GpuDelegate(strict=True, quiet=True)))
            elif kind == "native code":
                delegates.append(NativePartsDelegate(threads=threads, every_part=True))
                stack.callback(delegates[0].release)
            name = kind if kind == "OpenGL" else f"{kind}, {counted(threads, 'thread')}"
            yield name, Decoding(bench.decoder, _interpreter(model, delegates, threads))


def _interpreter(model: bytes, delegates: Sequence[Any], threads: int) -> Any:
    """With XNNPACK where there are no delegates."""
    module = load_interpreter_module()
    kinds = module.OpResolverType
    resolver = kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES if delegates else kinds.AUTO
    made = module.Interpreter(
        model_content=model,
        experimental_delegates=[*delegates],
        experimental_op_resolver_type=resolver,
        num_threads=threads,
    )
    made.allocate_tensors()
    return made


def count_work(decoder: Decoder) -> list[DecoderRow]:
    """For each signature its kernels on OpenGL and in native code, and the bytes of its cache that these copy."""
    model, rows = decoder_model(decoder), list[DecoderRow]()
    for number, name in enumerate(SIGNATURES):
        graph = read_model(model, subgraph=number)
        compiled = compile_graph(graph, SOFTWARE)
        sizes = {t: compiled.storages[t].size_bytes(shape_of(tensor)) for t, tensor in compiled.graph.tensors.items()}
        network = NativeNetwork.load(graph, threads=1)
        tensors = network.image.tensors
        rows.append(
            {
                "signature": name,
                "dispatches": len(compiled.kernels),
                "steps": len(network.image.steps),
                "cache_bytes": sum(sizes[state.read] for state in compiled.graph.states),
                "copied_bytes": sum(
                    sizes[state.written]
                    for state in compiled.graph.states
                    if state.written != ABSENT and _differ(compiled.plan.places, state.read, state.written)
                ),
                "native_copied_bytes": sum(
                    4 * tensors[state.written].floats
                    for state in network.image.states
                    if state.written != ABSENT
                    and (state.read == ABSENT or tensors[state.read].place != tensors[state.written].place)
                ),
            }
        )
        network.close()
    return rows


def _differ(places: Mapping[int, object], read: int, written: int) -> bool:
    return read == ABSENT or places[read] != places[written]

"""Measure tokens a second of a decoder that is drawn with random weights, and count what each token takes.

python -m tests.tools.decoder                         # 4 layers of 256, on OpenGL, in native code, by XNNPACK
python -m tests.tools.decoder --width 512 --heads 8 --vocabulary 8000 --positions 512 --tokens 256 --threads 1,2,4
"""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from tests.model_files.decoder_models import Decoder
from tests.tools.command import run_tool
from tests.tools.decoder.decoder_times import DecoderBench, bench_decoder, check_sizes, count_work
from texelflow.app.console import Console
from texelflow.app.opengl_options import with_opengl
from texelflow.app.verb_options import JsonOption
from texelflow.gpu_delegate.base.errors import UsageError

_MOST_THREADS = 256


@with_opengl
def decoder_tool(
    layers: Annotated[int, typer.Option(metavar="N", help="Of the decoder.")] = 4,
    width: Annotated[int, typer.Option(metavar="N", help="Values of a token.")] = 256,
    heads: Annotated[int, typer.Option(metavar="N", help="Of queries.")] = 8,
    groups: Annotated[int, typer.Option(metavar="N", help="Of heads that share keys and values.")] = 2,
    hidden: Annotated[int, typer.Option(metavar="N", help="Values of the gated units.")] = 1024,
    vocabulary: Annotated[int, typer.Option(metavar="N", help="Different tokens.")] = 4000,
    positions: Annotated[int, typer.Option(metavar="N", help="Of the cache.")] = 256,
    prompt: Annotated[int, typer.Option(metavar="N", help="Tokens of a prompt.")] = 32,
    tokens: Annotated[int, typer.Option(metavar="N", help="Behind it.")] = 64,
    rounds: Annotated[int, typer.Option(metavar="N", help="Of a prompt and its tokens; medians count.")] = 5,
    threads: Annotated[str, typer.Option(metavar="1,2", help="Of native code and of XNNPACK.")] = "1,2",
    positions_first: Annotated[bool, typer.Option(help="Caches with positions ahead of heads.")] = False,
    fed_back: Annotated[bool, typer.Option(help="Caches as inputs and outputs, not as variables.")] = False,
    json: JsonOption = False,
) -> int:
    """Measure tokens a second of a decoder, by each way in turn, and count kernels and copies of the cache."""
    console = Console(quiet=json)
    decoder = Decoder(
        layers, width, heads, groups, hidden, vocabulary, positions, prompt,
        "fed back" if fed_back else "variables", heads_first=not positions_first,
    )  # fmt: skip
    bench = DecoderBench(decoder, tokens, rounds, parse_threads(threads))
    check_sizes(bench)
    work, rows = count_work(decoder), bench_decoder(bench, console.say)
    by_way = ("way", "prefill, tokens/s", "decode, tokens/s", "difference to the last")
    console.table("Tokens a second", by_way, [tuple(row.values()) for row in rows])
    by_signature = ("signature", "dispatches", "steps", "bytes of cache", "copied, OpenGL", "copied, native code")
    console.table("Work of one run", by_signature, [tuple(row.values()) for row in work])
    if json:
        console.json({"decoder": vars(decoder), "ways": rows, "work": work})
    return 0


def parse_threads(text: str) -> tuple[int, ...]:
    """1,2. Raises UsageError."""
    parts = text.split(",")
    if not all(part.isdecimal() and len(part) <= 3 and 1 <= int(part) <= _MOST_THREADS for part in parts):
        raise UsageError(f"--threads {text}: numbers from 1 to {_MOST_THREADS} with commas are needed")
    return tuple(dict.fromkeys(map(int, parts)))


def main(arguments: Sequence[str] | None = None) -> int:
    return run_tool("decoder", decoder_tool, arguments)


if __name__ == "__main__":
    sys.exit(main())

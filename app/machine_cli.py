"""The command lines of `texelflow tune` and `texelflow cache`: what is measured and kept about this machine."""

from typing import Annotated

import typer

from .opengl_options import with_opengl
from .verb_options import HybridOption, JsonOption, PrecisionOption, SignatureOption

cache = typer.Typer(no_args_is_help=True, help="List or clear what is kept on disk: measurements, code, checks passed.")


@cache.command("list")
def cache_list_verb(json: JsonOption = False) -> int:
    """List what is kept, of 256 MiB at most, and where; what is used least goes first."""
    from .console import Console
    from .verbs.cache import list_cache

    return list_cache(Console(quiet=json), json)


@cache.command("clear")
def cache_clear_verb(
    kind: Annotated[
        str | None,
        typer.Argument(metavar="KIND", help="tuning, backends, networks, objects or runtimes; all by default."),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Remove what is kept; it is measured again when needed. Fetched models and photographs stay."""
    from .console import Console
    from .verbs.cache import clear_cache

    return clear_cache(kind, Console(quiet=json), json)


@with_opengl
def tune_verb(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A name of the catalogue or a .tflite.")] = "selfie",
    budget: Annotated[str, typer.Option(metavar="TIME", help="How long to search: 10s, 1:30.")] = "10s",
    precision: PrecisionOption = "fp32",
    hybrid: HybridOption = "expanded",
    gentle: Annotated[bool, typer.Option("--gentle", hidden=True)] = False,
    only_on: Annotated[str, typer.Option("--only-on", hidden=True)] = "",
    signature: SignatureOption = None,
    json: JsonOption = False,
) -> int:
    """Measure which kernels of a model are fastest on this GPU, and keep that for all later runs.

    Longest kernels come first; whatever ends it, what was found counts. `texelflow inspect MODEL` shows it, `texelflow
    cache clear tuning` forgets it.
    """
    from .console import Console
    from .verbs.precision import parse_hybrid, parse_precision
    from .verbs.tune import TuneOptions, parse_budget, run_tune

    asked = parse_budget(budget), parse_precision(precision), json, gentle, only_on, signature, parse_hybrid(hybrid)
    return run_tune(model, TuneOptions(*asked), Console(quiet=json))

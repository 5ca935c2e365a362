"""Arguments of `texelflow cache` go in; what the program keeps on this machine is listed or removed."""

from typing import Annotated

import typer

from .options import JsonOption

cache = typer.Typer(no_args_is_help=True, help="List or clear what the program keeps on disk: tuning, checks passed.")


@cache.command("list")
def cache_list_verb(json: JsonOption = False) -> int:
    """List what is kept, of 256 MiB at most, and where; what is used least goes first."""
    from .console import Console
    from .verbs.cache import list_cache

    return list_cache(Console(quiet=json), json)


@cache.command("clear")
def cache_clear_verb(
    kind: Annotated[str | None, typer.Argument(metavar="KIND", help="tuning or runtimes; all by default.")] = None,
    json: JsonOption = False,
) -> int:
    """Remove what is kept; it is found out anew when it is needed. Fetched models and photographs stay."""
    from .console import Console
    from .verbs.cache import clear_cache

    return clear_cache(kind, Console(quiet=json), json)

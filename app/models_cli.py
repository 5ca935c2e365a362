"""The command line of `texelflow models`: lists the catalogue, or fetches a model of it."""

from typing import Annotated

import typer

from .verb_options import JsonOption

models = typer.Typer(help="List the models that can be fetched by name, or fetch one.")


@models.callback(invoke_without_command=True)
def models_verb(context: typer.Context, json: JsonOption = False) -> int:
    """List the models that can be fetched by name."""
    if context.invoked_subcommand is not None:
        return 0
    from .console import Console
    from .verbs.verb_tables import show_models

    return show_models(Console(quiet=json), json)


@models.command("fetch")
def fetch_verb(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name that `texelflow models` lists.")],
    json: JsonOption = False,
) -> int:
    """Fetch a model of the catalogue into the user's cache; at once if it is there."""
    from .console import Console
    from .models.catalogue import fetch

    console = Console(quiet=json)
    with console.download() as progress:
        path = fetch(name, progress)
    console.say(str(path))
    if json:
        console.json({"name": name, "path": str(path)})
    return 0

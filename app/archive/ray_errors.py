"""What Ray says where something fails, many lines, goes in; one line of what a person needs comes out."""

import re

from ..console import one_line

_MOST_TEXT = 400
_VERSIONS = re.compile(r"Ray: (\S+)\s+Python: (\S+)")


def death_reason(text: str) -> str:
    """Ray's words on a lost worker, many lines, as one line of what a person needs."""
    if "connection error code 2" in text:
        return "its process was killed, or crashed"
    if "temporarily unavailable" in text:
        return "it does not answer any more"
    lines = [line.strip() for line in text.splitlines()]
    for start in ("Worker exit detail:", "The actor is dead because", "Error Type:"):
        for line in lines:
            place = line.find(start)
            if place >= 0:
                told = line[place:].removeprefix("Worker exit detail:").strip()
                return _first_sentence(told)
    return _first_sentence(next(filter(None, lines), "no reason given"))


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")[:_MOST_TEXT]


def refusal_reason(text: str) -> str:
    """Why Ray does not start, or does not let us in."""
    if re.search(r"Unauthenticated|AuthToken|authentication token", text):
        return "it asks for a token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN, which `ray get-auth-token` on it tells"
    versions = _VERSIONS.findall(text)
    if len(versions) == 2:
        (ray, python), (own_ray, own_python) = versions
        return (
            f"it has Ray {ray} and Python {python}, here are Ray {own_ray} and Python {own_python}: make them the same"
        )
    if "No node info found" in text:
        return "this machine is not one of its nodes: `ray start --address=HOST:PORT` makes it one"
    if "Could not find any running Ray" in text:
        return "no Ray runs on this machine: `ray start --head` starts one"
    return one_line(text)[:_MOST_TEXT] or "no reason given"

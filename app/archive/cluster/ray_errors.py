"""Shortens Ray's long error messages to one line with what a person needs."""

import re

from ...console import one_line

_MOST_TEXT = 400
_LOG_LINE = re.compile(r"\[?\d{4}-\d\d-\d\d \d\d:\d\d")  # begins with a time
_NOBODY = re.compile(r"Failed to connect|Timed out while waiting|rpc_client")
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
    if _NOBODY.search(text):
        return "no Ray answers there: is that the port that `ray start --head` tells?"
    return one_line(text.partition("Traceback (most recent")[0])[:_MOST_TEXT] or "no reason given"


def last_words(text: str) -> str:
    """The last line of what a process had to say that is for people, not for its log; "" if there is none."""
    lines = [one_line(line) for line in text.splitlines() if line.strip() and not _LOG_LINE.match(line)]
    return lines[-1][:300] if lines else ""

"""What Ray says, in one line; its texts are those of Ray 2.60."""

import pytest

from texelflow.app.archive.cluster.ray_errors import death_reason, last_words, refusal_reason


def test_the_words_for_a_lost_worker_are_one_line() -> None:
    killed = "The actor died.\n class_name: W\nWorker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly "
    assert death_reason(killed + "exits with a connection error code 2. End of file. (1) ...") == (
        "its process was killed, or crashed"
    )
    memory = "x\nThe actor is dead because its worker process has died. Worker exit type: NODE_OUT_OF_MEMORY Worker "
    assert "its worker process has died" in death_reason(memory)
    unavailable = (
        "The actor 6ef7 is unavailable: The actor is temporarily unavailable: RpcError: RPC error: Socket closed"
    )
    assert death_reason(unavailable) == "it does not answer any more"
    assert death_reason("") == "no reason given"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "Failed to connect to Ray cluster at 10.0.0.1:6379\n[W] gcs_client.cc:210: Failed to get cluster ID from "
            "GCS server: Unauthenticated: RPC error: InvalidAuthToken: Authentication token is missing or incorrect",
            "it asks for a token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN, which `ray get-auth-token` on it tells",
        ),
        (
            "Version mismatch: The cluster was started with:\n    Ray: 2.50.0\n    Python: 3.12.1\n"
            "This process on node 10.0.0.2 was started with:\n    Ray: 2.60.0\n    Python: 3.11.7\n",
            "it has Ray 2.50.0 and Python 3.12.1, here are Ray 2.60.0 and Python 3.11.7: make them the same",
        ),
        (
            "Failed to connect to Ray cluster at 10.0.0.1:6379\nNo node info found matching attributes: '' when trying",
            "this machine is not one of its nodes: `ray start --address=HOST:PORT` makes it one",
        ),
        (
            "Could not find any running Ray instance. Please specify the one to connect to by setting `--address` flag",
            "no Ray runs on this machine: `ray start --head` starts one",
        ),
        (
            "Failed to connect to GCS at 10.0.0.1:6379. Last error: Traceback (most recent call last):\n  File",
            "no Ray answers there: is that the port that `ray start --head` tells?",
        ),
        ("it broke: Traceback (most recent call last):\n  File x", "it broke:"),
        ("something\nelse", "something else"),
        ("", "no reason given"),
    ],
)
def test_the_words_for_a_ray_that_refuses_are_one_line(said: str, told: str) -> None:
    assert refusal_reason(said) == told


def test_the_last_words_are_none_of_a_log() -> None:
    log = "[2026-11-23 13:14:55,207 W 11252 11252] rpc_client.h:638: Failed to connect within 5 seconds.\n"
    assert last_words(f"no memory\n{log}2026-11-23 13:14:55,207 INFO worker.py:1: x\n\n") == "no memory"
    assert last_words(log) == ""

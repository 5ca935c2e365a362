"""Signals at random moments of an invocation: each run is right to the last bit, or raises."""

import _thread
import json
import os
import random
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import Any

import numpy as np
import pytest

from tests.helpers.markers import one_in
from tests.helpers.waiting import PATIENCE_S
from tests.model_files.delegate_models import interleaved, interpreter, run
from texelflow.gpu_delegate.delegate.delegate import GpuDelegate
from texelflow.gpu_delegate.delegate.interruption import _answers, _Call

pytestmark = pytest.mark.gl

SIGNALS = int(os.environ.get("SIGNALS", "100"))
MOST_PAUSE_S = 0.004
TIMEOUT_S = PATIENCE_S
SIDE = 20  # of maps where hundreds of invocations need to take no longer on the CPU than on the GPU

# Prints how its invocations ended. Inputs differ from call to call, so that outputs that were left over are found.
PROGRAM = """
import json, signal, sys
import moderngl, numpy as np
from {module} import Interpreter
from tests.model_files.delegate_models import interleaved, interpreter, run
from texelflow.gpu_delegate.delegate.delegate import GpuDelegate
import {module} as runtime

wanted, number, of_caller = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "caller"
context = moderngl.create_context(standalone=True, require=430, backend="egl") if of_caller else None
delegate = GpuDelegate(min_nodes_per_partition=1, context=context, strict=True)
made = interpreter(runtime, interleaved({side}), delegate)
place, found = made.get_input_details()[0]["index"], made.get_output_details()[0]["index"]
inputs = [np.random.default_rng(seed).normal(0, 1, (1, {side}, {side}, 8)).astype(np.float32) for seed in range(7)]
expected = [run(made, each)[0] for each in inputs]
counts = dict(right=0, wrong=0, raised=0, failed=0, signals=0)
kind = KeyboardInterrupt if number == signal.SIGINT else TimeoutError


def handle(_, frame):
    while frame is not None:
        if frame.f_code is Interpreter.invoke.__code__:  # nowhere else: what counts would be interrupted, too
            counts["signals"] += 1
            raise kind("by a signal")
        frame = frame.f_back


def once(number):
    made.set_tensor(place, inputs[number])
    try:
        made.invoke()
    except RuntimeError as error:
        assert kind is TimeoutError and "TimeoutError: by a signal" in str(error), error
        return "failed"
    return "right" if np.array_equal(made.get_tensor(found), expected[number]) else "wrong"


signal.signal(number, handle)
print("ready", flush=True)
calls = 0
while counts["signals"] < wanted:
    calls += 1
    try:
        counts[once(calls % 7)] += 1
    except kind:
        counts["raised"] += 1
signal.signal(number, signal.SIG_IGN)
print(json.dumps(counts), flush=True)
"""

# Until native code makes the calls: while a thread still imports what that needs, Python may end with exit code 1
# instead of by the signal, since every exec of a text makes it forget what ended it.
LOADED = """
import threading
for _ in range(210):
    made.invoke()
for thread in threading.enumerate():
    if thread.name == "call machine":
        thread.join()
"""


def pelt(process: "subprocess.Popen[str]", number: int) -> dict[str, int]:
    """Send signals at random moments until the program has had enough of them; what it prints."""
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    rng, end_s = random.Random(1), time.monotonic() + TIMEOUT_S
    os.set_blocking(process.stdout.fileno(), False)
    while not (line := process.stdout.readline()) and process.poll() is None and time.monotonic() < end_s:
        process.send_signal(number)
        time.sleep(rng.uniform(0, MOST_PAUSE_S))
    if not (line := line or process.stdout.readline()):
        process.kill()
        raise AssertionError(f"it ended otherwise: {process.communicate()[1]}")
    found: dict[str, int] = json.loads(line)
    return found


@one_in(3, ("form", "number"), [("thread", signal.SIGINT), ("caller", signal.SIGINT), ("thread", signal.SIGALRM)])
def test_signals_at_random_moments(runtime: Any, form: str, number: int) -> None:
    """Half of them or so come while C++ runs, and are handled at the start of a callback."""
    program = PROGRAM.format(module=runtime.__name__, side=40)
    command = (sys.executable, "-c", program, str(SIGNALS), str(int(number)), form)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            counts = pelt(process, number)
        finally:
            process.kill()
            said = process.stderr.read() if process.stderr else ""
    assert "Exception ignored" not in said
    assert counts["wrong"] == 0
    assert counts["raised"] + counts["failed"] > 5, counts
    assert counts["failed"] == 0 or number == signal.SIGALRM, "an interruption lets the invocation end first"


def test_a_signal_between_the_last_lines_of_a_call() -> None:
    """Where those that came before are to be told again: the call ends, and is right."""

    def work(_: int) -> int:
        _thread.interrupt_main()
        return 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code is _Call.step.__code__ and event == "line" and frame.f_locals["self"].trips:
            raise KeyboardInterrupt  # which ends the tracing, too
        return trace

    call = _Call(work, lambda _, error: pytest.fail(repr(error)), 1, 1, None)
    answers = _answers(call)
    next(answers)
    sys.settrace(trace)
    with pytest.raises(KeyboardInterrupt):
        answers.send(1)
    assert sys.gettrace() is None
    assert call.status == 0


@one_in(
    4,
    "loop",
    [
        "made.invoke()",
        "kept.append(interpreter(runtime, interleaved(), GpuDelegate(min_nodes_per_partition=1, quiet=True)))",
    ],
)
def test_ctrl_c_ends_a_program_as_ever(runtime: Any, loop: str) -> None:
    """With Python's own handler: the usual traceback, out of where it was, and the usual end."""
    program = PROGRAM.format(module=runtime.__name__, side=SIDE).split("signal.signal(number")[0]
    program += LOADED + f'print("ready", flush=True)\nkept = []\nwhile True:\n    {loop}\n'
    command = (sys.executable, "-c", program, "1", "2", "thread")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(random.uniform(0.1, 0.2))
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGINT, said
    assert said.rstrip().endswith("KeyboardInterrupt")
    assert "Exception ignored" not in said


def test_where_no_room_for_calls_is_left(runtime: Any) -> None:
    """At every depth near the limit of recursion: right, or it raises; and right again afterwards."""
    made = interpreter(runtime, interleaved(SIDE), GpuDelegate(min_nodes_per_partition=1, strict=True))
    inputs = [np.random.default_rng(seed).normal(0, 1, (1, SIDE, SIDE, 8)).astype(np.float32) for seed in (0, 1)]
    expected = [run(made, each)[0] for each in inputs]
    place, found = made.get_input_details()[0]["index"], made.get_output_details()[0]["index"]
    ends = {"right": 0, "raised": 0}

    def dive(depth: int) -> None:
        if depth:
            dive(depth - 1)
        else:
            made.invoke()

    for depth in range(sys.getrecursionlimit() - 300, sys.getrecursionlimit()):
        number = depth % 2
        made.set_tensor(place, inputs[number])
        try:
            dive(depth)
        except RuntimeError:  # RecursionError is one
            ends["raised"] += 1
            if ends["raised"] > 60:
                break
        else:
            ends["right"] += 1
            np.testing.assert_array_equal(made.get_tensor(found), expected[number])
    assert ends["right"] > 100
    assert ends["raised"] > 5
    np.testing.assert_array_equal(run(made, inputs[0])[0], expected[0])

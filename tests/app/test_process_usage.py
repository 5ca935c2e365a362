"""The memory and the CPU time of this process and of others, as Linux tells them."""

import mmap
import subprocess
import sys

import numpy as np

from texelflow.app.process_usage import process_usage

MIB = 1 << 20
HOLDS = "data = bytearray(b'x') * (64 << 20); print('here', flush=True); input()"


def test_memory_that_is_taken_shows() -> None:
    before = process_usage()
    with mmap.mmap(-1, 64 * MIB) as memory:  # pages that no earlier test has had: malloc may hand out resident ones
        np.frombuffer(memory, np.uint8)[:] = 1
        during = process_usage()
    assert before.resident_bytes is not None
    assert during.resident_bytes is not None
    assert during.peak_bytes is not None
    assert during.resident_bytes - before.resident_bytes > 0.9 * 64 * MIB
    assert during.peak_bytes >= during.resident_bytes - MIB
    assert (during.cpu_s or 0) > (before.cpu_s or 0) > 0


def test_another_process_is_told_of_until_it_has_ended() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        process.stdout.readline()
        usage = process_usage(process.pid)
        process.communicate(b"\n")
    assert usage.resident_bytes is not None
    assert 64 * MIB < usage.resident_bytes <= (usage.peak_bytes or 0)
    assert (usage.cpu_s or 0) < 60
    ended = process_usage(process.pid)
    assert (ended.resident_bytes, ended.peak_bytes, ended.cpu_s) == (None, None, None)

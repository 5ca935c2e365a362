"""`texelflow live --latency-test`: runs the measurement of latency, and shows its figures."""

import contextlib
from typing import Any

from texelflow.gpu_delegate.base.errors import MediaError, UsageError
from texelflow.gpu_delegate.targets.gl.context import DRAWING

from ...console import Console
from ...live.sourcing import Waker, open_source
from ...settings.settings import Settings
from ...signals import exit_code, stop_flag
from ...window.glfw_window import Window
from .latency import USUAL, FlashPlan, Latency, latency_test

_SIZE = (1280, 720)  # of the window, where the screen is as large
_FEW = 0.5  # of the flashes: with fewer the figure is doubtful
INCLUDED = "screen, camera, cable and decoding"


def measure_latency(settings: Settings, console: Console, plan: FlashPlan = USUAL) -> tuple[dict[str, Any], int]:
    """Measure the loop of window and camera: figures, and the exit code, 0, or 130 or 143 if it was interrupted.

    The figures are empty if the person ended it. Raises TexelflowError: no camera, no display, a camera that does not
    see the window; UsageError for several cameras.
    """
    if len(settings.cameras) > 1:
        raise UsageError("--latency-test is of one camera; name one with --camera")
    wake = Waker()
    with contextlib.ExitStack() as stack:
        source = open_source(settings, wake)
        capture = stack.enter_context(source.captures[0])
        console.note(
            f"{capture.description}: point it at the window, which flashes for {plan.seconds:.0f} s; q ends it"
        )
        window = stack.enter_context(Window(_SIZE, "texelflow latency test", DRAWING))
        wake.loop = window.wake
        if settings.fullscreen:
            window.toggle_fullscreen()
        stopped = stack.enter_context(stop_flag())
        latency = latency_test(window, capture, plan, lambda: bool(stopped))
        name = capture.description
    if latency is None:
        console.note("the latency test was ended early")
        return {}, exit_code(stopped.number)
    return summarize_latency(latency, name), 0


def summarize_latency(latency: Latency, camera: str) -> dict[str, Any]:
    """Figures of the loop, for JSON. Raises MediaError if the camera saw none of it."""
    if latency.pictures == 0:
        raise MediaError(f"no picture came from {camera} while the window flashed; look at it with texelflow live")
    if not latency.delays_ms:
        raise MediaError(f"the camera does not see the flashes: point it at the window ({camera})")
    loop_ms = {name: round(latency.percentile_ms(of), 2) for name, of in (("p5", 5), ("median", 50), ("p95", 95))}
    return {
        "camera": camera,
        "pictures": latency.pictures,
        "period_ms": round(latency.period_ms, 2),
        "flashes": latency.changes,
        "lost": latency.lost,
        "loop_ms": loop_ms,
        "loop_frames": round(latency.median_ms / latency.period_ms, 2),
        "stamps": latency.stamps,
        "to_stamp_ms": None if latency.to_stamp_ms is None else round(latency.to_stamp_ms, 2),
        "includes": INCLUDED,
    }


def show_latency(summary: dict[str, Any], console: Console) -> None:
    """The same in words; nothing if it was ended early."""
    if not summary:
        return
    loop_ms, seen = summary["loop_ms"], summary["flashes"] - summary["lost"]
    console.say(
        f"loop {loop_ms['median']:.1f} ms, {summary['loop_frames']:.1f} frames of {summary['period_ms']:.1f} ms; "
        f"90% of the flashes within {loop_ms['p5']:.1f} to {loop_ms['p95']:.1f} ms; "
        f"{seen} of {summary['flashes']} flashes seen"
    )
    console.say(f"from the window's swap to the decoded picture: {INCLUDED}, which this cannot distinguish")
    if summary["to_stamp_ms"] is not None:
        rest_ms = loop_ms["median"] - summary["to_stamp_ms"]
        console.say(
            f"by the camera's stamps ({summary['stamps']}) {summary['to_stamp_ms']:.1f} ms of it are before the stamp, "
            f"{rest_ms:.1f} ms after"
        )
    console.say("what live does from there to its own swap comes on top")
    if seen < _FEW * summary["flashes"]:
        console.warn("few flashes were seen: move the camera nearer to the window, or make it darker around")

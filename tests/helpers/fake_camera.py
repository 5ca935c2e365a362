"""A camera that Linux seems to have, which sends recorded buffers to the real program in another process.

tests/helpers/fake_v4l2.c answers for the device, below OpenCV's V4L2 and below our own questions; nothing else is
replaced.
"""

import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

from tests.helpers.clocks import ManualClock
from tests.helpers.waiting import PATIENCE_S
from texelflow.app.capture.camera import open_camera
from texelflow.app.capture.capture import Capture
from texelflow.app.capture.capture_device import OpenCvCamera
from texelflow.app.capture.listing import listed_nodes
from texelflow.app.capture.raw import rgba_of
from texelflow.app.capture.source import CaptureRequest
from texelflow.app.live.loopback_readers import readers
from texelflow.gpu_delegate.base.errors import MediaError

_ROOT = Path(__file__).parents[2]


def compiler() -> str | None:
    """A C compiler on Linux, None without one."""
    return shutil.which("cc") if sys.platform == "linux" else None


class FakeCamera:
    """A folder that stands for a device, and a process that uses it. Leave its with-block to end that."""

    def __init__(self, folder: Path, modes: Sequence[tuple[str, int, int, int]], buffers: Mapping[str, bytes]) -> None:
        """modes are (pixels, width, height, frames per second); buffers by pixels what is sent."""
        self.folder, self.node = folder, folder / "video0"
        self.node.touch()
        (folder / "modes").write_text("".join(f"{' '.join(map(str, mode))}\n" for mode in modes))
        for pixels, data in buffers.items():
            (folder / pixels).write_bytes(data)
        library = folder / "fake_v4l2.so"
        source = Path(__file__).with_name("fake_v4l2.c")
        subprocess.run([str(compiler()), "-O1", "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.helpers.fake_camera"], cwd=_ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "FAKE_V4L2": str(folder), "LD_PRELOAD": str(library)},
        )  # fmt: skip

    def __enter__(self) -> "FakeCamera":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=30)

    def ask(self, do: str, **options: Any) -> dict[str, Any]:
        """Let the other process do something, and return what it tells."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"do": do, "node": str(self.node), **options}), file=self._process.stdin, flush=True)
        answers, _, _ = select.select([self._process.stdout], [], [], PATIENCE_S)
        assert answers, f"no answer to {do}"
        told: dict[str, Any] = json.loads(self._process.stdout.readline())
        return told

    def open(self, **wanted: Any) -> dict[str, Any]:
        """Open it anew, and tell about it."""
        return self.ask("open", **wanted)

    def read(self) -> dict[str, Any]:
        """Read a picture, and tell about it."""
        return self.ask("read", save=str(self.folder / "picture.npy"))

    def picture(self) -> Any:
        """The last picture that was read, as RGBA."""
        return np.load(self.folder / "picture.npy")

    def turn(self, what: str, on: bool) -> None:
        """Let the camera be "busy", "still" or "padded", or not."""
        (self.folder / what).touch() if on else (self.folder / what).unlink()


class _Worker:
    """What runs in the other process."""

    def __init__(self) -> None:
        self._camera: OpenCvCamera | None = None
        self._capture: Capture | None = None
        self._clock = ManualClock()

    def open(self, node: str, **wanted: Any) -> dict[str, Any]:
        self.close()
        if "size" in wanted:
            wanted["size"] = tuple(wanted["size"])
        camera = self._camera = open_camera(node, CaptureRequest(**wanted))
        return {"description": camera.description, "fps": camera.fps, "layout": camera.format.layout}

    def read(self, node: str, save: str) -> dict[str, Any]:
        camera = self._camera
        assert camera is not None
        shot = camera.read()
        now_ns = perf_counter_ns()
        np.save(save, rgba_of(shot.picture))
        age_ns = None if shot.captured_ns is None else now_ns - shot.captured_ns
        return {"age_ns": age_ns, "stamps": camera.stamps, "damaged": camera.damaged, "size": shot.picture.format.size}

    def watch(self, node: str) -> dict[str, Any]:
        self.close()
        self._capture = Capture(lambda: open_camera(node, CaptureRequest()), clock=self._clock)
        return {"size": self._capture.first(10).picture.format.size}

    def state(self, node: str) -> dict[str, Any]:
        assert self._capture is not None
        self._clock.pass_while_waiting(self._capture)
        frame, state = self._capture.take(), self._capture.state
        return {"phase": state.phase, "message": state.message, "new": frame is not None}

    def list(self, node: str) -> dict[str, Any]:
        (found,) = listed_nodes([node])
        modes = [[mode.pixels, mode.size, mode.rates] for mode in found.modes]
        return {"name": found.name, "camera": found.camera, "modes": modes, "trouble": found.trouble}

    def readers(self, node: str) -> dict[str, Any]:
        return {"readers": readers(node)}

    def close(self) -> None:
        for used in (self._camera, self._capture):
            if used is not None:
                used.close()
        self._camera = self._capture = None


def _serve() -> None:
    worker = _Worker()
    for line in sys.stdin:
        options = json.loads(line)
        try:
            told = getattr(worker, options.pop("do"))(**options)
        except MediaError as error:
            told = {"error": str(error), "kind": type(error).__name__}
        print(json.dumps(told), flush=True)
    worker.close()


if __name__ == "__main__":
    _serve()

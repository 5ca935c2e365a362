"""Without EGL, GLX and any driver of OpenGL all works that shows no window: in a process where they are hidden.

libGL itself stays, and what it needs: opencv-python loads it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.model_files.model_builder import ODD_BLOCKS, selfie_like
from texelflow import assets
from texelflow.app.media.sources import FileSource
from texelflow.gpu_delegate.targets.llvm import compiler

pytestmark = pytest.mark.skipif(bool(compiler.available()), reason="there is no code for this CPU")

CLIP = Path(assets.__file__).parent / "people.mp4"
HIDDEN = {"__EGL_VENDOR_LIBRARY_FILENAMES": "/nonexistent", "LIBGL_DRIVERS_PATH": "/nonexistent", "DISPLAY": ""}
PROGRAM = """
import json, os, re, signal, sys, threading, time
from pathlib import Path

def refuse(event, arguments):
    if event == "ctypes.dlopen" and re.search("libEGL|libGLX|libOpenGL|libGLES|gallium|_dri", str(arguments[0])):
        raise OSError(f"{arguments[0]} is hidden")

sys.addaudithook(refuse)
import numpy as np
import texelflow
from texelflow.app.cli import main

clip, folder, codes = sys.argv[1], Path(sys.argv[2]), {}

def interrupt_soon():
    lines = folder / "live.jsonl"
    while not lines.exists() or lines.read_text().count("\\n") < 8:
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)

codes["replay"] = main(["replay", clip, "--to", "4", "--effect", "blur", "--out", str(folder / "replay.mp4")])
cutout = ["--from", "60", "--to", "61", "--effect", "cutout", "--out", str(folder / "cutout")]
codes["cutout"] = main(["replay", clip, *cutout])
codes["archive"] = main(["archive", str(folder / "replay.mp4"), "--out", str(folder / "archive"), "--with-masks"])
codes["check"] = main(["check", str(folder / "small.tflite"), "--backend", "native"])
with texelflow.Segmenter("selfie") as segment:
    mask = segment(np.full((48, 64, 3), 128, np.uint8))
    codes["segmenter"] = [*mask.shape, segment.backend]
threading.Thread(target=interrupt_soon, daemon=True).start()
live = ["live", "--camera", clip, "--no-window", "--effect", "replace", "--out", str(folder / "live.mkv")]
codes["live"] = main([*live, "--json-lines", str(folder / "live.jsonl")])
loaded = Path("/proc/self/maps").read_text()
codes["loaded"] = sorted(set(re.findall(r"(?:libEGL|libGLX_|libgallium|libOpenGL|swrast_dri)[^/\\s]*", loaded)))
print(json.dumps(codes))
"""


def test_all_works_that_shows_no_window(tmp_path: Path) -> None:
    (tmp_path / "small.tflite").write_bytes(selfie_like(1, blocks=ODD_BLOCKS[1:3]))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(CLIP), str(tmp_path)],
        env={**os.environ, **HIDDEN}, capture_output=True, text=True, timeout=180,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    codes = json.loads(done.stdout.splitlines()[-1])
    assert codes == {
        "replay": 0, "cutout": 0, "archive": 0, "check": 0, "segmenter": [48, 64, "cpu"], "live": 130, "loaded": [],
    }, done.stderr  # fmt: skip
    for name in ("replay.mp4", "live.mkv"):
        with FileSource(tmp_path / name) as source:
            pictures = [frame.rgba for frame in source]
        assert len(pictures) >= 5
        assert all(picture[..., :3].std() > 20 for picture in pictures[:5])
    clear = cv2.imread(str(tmp_path / "cutout" / "000061.png"), cv2.IMREAD_UNCHANGED)
    assert clear.shape[2] == 4
    assert 0 < (np.asarray(clear)[..., 3] > 200).mean() < 0.9
    assert len(list((tmp_path / "archive").rglob("*.mp4"))) == 2

"""On random clips whose faces are known by construction no frame of a replay shows one: real networks, in native code.

Faces come in at edges, fade in, come out behind walls, cross; backgrounds, noise, light and a camera's shake differ.
`python -m tests.tools.uncovered_faces` counts more of them.
"""

import pytest

from tests.generators.face_clips import face_clip
from tests.helpers.markers import one_in
from tests.tools.uncovered_faces import open_guard, uncovered
from texelflow.app.settings.settings import defaults
from texelflow.gpu_delegate.targets.llvm import compiler

pytestmark = pytest.mark.skipif(bool(compiler.available()), reason="there is no code for this CPU")


@one_in(24, "seed", range(24))
def test_no_frame_of_a_replay_shows_a_face(seed: int) -> None:
    clip = face_clip(seed, frames=40)
    with open_guard() as guard:
        shares = uncovered(clip, guard, defaults("replay").face_delay)
    assert max(shares) <= 0.1, f"{clip.words}: {[round(share, 2) for share in shares]}"

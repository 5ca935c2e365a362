"""Stands a person from a video in a moderngl scene, among boxes: texture in, texture out, nothing is read back.

    python examples/scene.py RESULT.png [VIDEO]

The picture is drawn without a window; in one's own program the loop draws into a window, and nothing else changes.
"""

import sys
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import cv2
import moderngl
import numpy as np

import texelflow

USAGE = "usage: scene.py RESULT.png [VIDEO]"
SIZE = 960, 540
FRAMES = 40, 50  # of the video

VERTICES = """
#version 430
uniform mat4 view;
uniform mat4 placed;
in vec3 corner;
in vec3 normal;
in vec2 place;
out vec3 at, facing;
out vec2 within;
void main() {
    vec4 world = placed * vec4(corner, 1.0);
    at = world.xyz, facing = mat3(placed) * normal, within = place;
    gl_Position = view * world;
}
"""
SOLID = """
#version 430
uniform vec3 hue;
in vec3 at, facing;
out vec4 color;
void main() {
    vec3 up = normalize(facing);
    float light = 0.35 + 0.65 * max(dot(up, normalize(vec3(0.5, 1.0, 0.7))), 0.0);
    float tile = up.y > 0.9 && at.y < 0.01 ? 0.85 + 0.15 * mod(floor(at.x) + floor(at.z), 2.0) : 1.0;
    float shade = at.y < 0.01 ? 1.0 - 0.6 * exp(-2.5 * dot(at.xz, at.xz * vec2(0.5, 3.0))) : 1.0;  // under the person
    color = vec4(mix(hue * light * tile * shade, vec3(0.75, 0.85, 0.95), smoothstep(4.0, 14.0, length(at))), 1.0);
}
"""
PERSON = """
#version 430
layout(binding = 0) uniform sampler2D person;  // what is not the person is transparent
in vec2 within;
out vec4 color;
void main() {
    color = texture(person, within);
    if (color.a < 0.004) discard;
}
"""


def main(result: str, video: str = "") -> None:
    """Draw the scene for some frames, and write the last picture."""
    frames = list(frames_of(video or str(files("texelflow.assets") / "people.mp4")))
    if not frames:
        sys.exit(f"{video}: no video, or one of fewer than {FRAMES[0]} frames; {USAGE}")
    own: dict[str, Any] = {"backend": "egl"} if sys.platform == "linux" else {}  # no window is needed
    with (
        moderngl.create_context(standalone=True, require=430, **own) as gl,
        texelflow.Pipeline(context=gl, effect="cutout", model="selfie") as cut_out,
    ):
        scene, target = Scene(gl), gl.framebuffer([gl.texture(SIZE, 3)], gl.depth_texture(SIZE))
        seen = gl.texture((frames[0].shape[1], frames[0].shape[0]), 3, alignment=1)
        for frame in frames:
            seen.write(frame.tobytes(), alignment=1)
            scene.draw(target, cut_out(seen))
        drawn = np.frombuffer(target.read(alignment=1), np.uint8).reshape(SIZE[1], SIZE[0], 3)[::-1]
    cv2.imwrite(result, cv2.cvtColor(drawn, cv2.COLOR_RGB2BGR))


def frames_of(video: str) -> Iterator[Any]:
    """Some frames, RGB."""
    clip = cv2.VideoCapture(video)
    clip.set(cv2.CAP_PROP_POS_FRAMES, FRAMES[0])
    for _ in range(*FRAMES):
        there, bgr = clip.read()
        if there:
            yield cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)


class Scene:
    """A floor, four boxes, and a card with the person on it."""

    def __init__(self, gl: moderngl.Context) -> None:
        self._gl = gl
        self._solid = gl.program(vertex_shader=VERTICES, fragment_shader=SOLID)
        self._card = gl.program(vertex_shader=VERTICES, fragment_shader=PERSON)
        self._box = self._shape(self._solid, box())
        self._person = self._shape(self._card, CARD)
        view = perspective(45, SIZE[0] / SIZE[1]) @ turned(0.15, 0) @ turned(-0.25, 1) @ moved(0.4, -1.3, -4.3)
        for shader in (self._solid, self._card):
            write(shader, "view", view)

    def draw(self, target: moderngl.Framebuffer, person: moderngl.Texture) -> None:
        """What is solid first, then what is blended with it."""
        target.use()
        target.clear(0.75, 0.85, 0.95)
        self._gl.enable(moderngl.DEPTH_TEST)
        for hue, placed in BOXES:
            self._solid["hue"] = hue
            write(self._solid, "placed", placed)
            self._box.render()
        self._gl.enable(moderngl.BLEND)
        person.repeat_x = person.repeat_y = False
        person.use(0)
        write(self._card, "placed", moved(-0.1, 1.1, 0.0) @ scaled(1.1 * person.width / person.height, 1.1, 1))
        self._person.render(moderngl.TRIANGLE_STRIP)
        self._gl.disable(moderngl.BLEND | moderngl.DEPTH_TEST)

    def _shape(self, shader: moderngl.Program, corners: Any) -> moderngl.VertexArray:
        corners = np.asarray(corners, "f4")
        names = [name for name in ("corner", "normal", "place") if name in shader]
        columns = {"corner": corners[:, :3], "normal": corners[:, 3:6], "place": corners[:, 6:]}
        content = [
            (self._gl.buffer(np.ascontiguousarray(columns[name])), f"{columns[name].shape[1]}f", name) for name in names
        ]
        return self._gl.vertex_array(shader, content)


def write(shader: moderngl.Program, name: str, matrix: Any) -> None:
    """Set a uniform, in columns as OpenGL has them."""
    uniform: Any = shader[name]
    uniform.write(np.ascontiguousarray(matrix.T, "f4"))


def box() -> Any:
    """36 corners of a cube from -1 to 1, with normals, and nothing for places in a texture."""
    corners = []
    for axis in range(3):
        for side in (-1, 1):
            for u, v in ((-1, -1), (1, -1), (1, 1), (-1, -1), (1, 1), (-1, 1)):
                corner, normal = np.roll([side, u, v], axis), np.roll([side, 0, 0], axis)
                corners.append([*corner, *normal, 0, 0])
    return corners


def moved(x: float, y: float, z: float) -> Any:
    """A matrix that moves."""
    matrix = np.eye(4)
    matrix[:3, 3] = x, y, z
    return matrix


def scaled(x: float, y: float, z: float) -> Any:
    """A matrix that makes larger."""
    return np.diag([x, y, z, 1.0])


def turned(angle: float, axis: int) -> Any:
    """A matrix that turns about an axis, in radians."""
    one, other = [each for each in range(3) if each != axis]
    matrix = np.eye(4)
    matrix[one, one] = matrix[other, other] = np.cos(angle)
    matrix[one, other], matrix[other, one] = -np.sin(angle), np.sin(angle)
    return matrix


def perspective(degrees: float, aspect: float, near: float = 0.1, far: float = 40.0) -> Any:
    """A matrix of a camera that looks along -z."""
    length, depth = 1 / np.tan(np.radians(degrees) / 2), near - far
    return np.array(
        [
            [length / aspect, 0, 0, 0],
            [0, length, 0, 0],
            [0, 0, (far + near) / depth, 2 * far * near / depth],
            [0, 0, -1, 0],
        ]
    )


CARD = [[x, y, 0, 0, 0, 1, (x + 1) / 2, (1 - y) / 2] for x, y in ((-1, -1), (1, -1), (-1, 1), (1, 1))]
BOXES = [
    ((0.55, 0.5, 0.45), moved(0, -0.1, 0) @ scaled(20, 0.1, 20)),  # the floor
    ((0.45, 0.3, 0.2), moved(-0.5, 0.2, 0.4) @ scaled(1.3, 0.2, 0.25)),  # a desk before the person
    ((0.8, 0.25, 0.3), moved(0.5, 0.52, 0.4) @ turned(0.3, 1) @ scaled(0.12, 0.12, 0.12)),
    ((0.2, 0.45, 0.8), moved(1.6, 0.4, -0.9) @ turned(0.5, 1) @ scaled(0.4, 0.4, 0.4)),
    ((0.9, 0.6, 0.15), moved(-1.9, 0.7, -1.6) @ turned(-0.3, 1) @ scaled(0.35, 0.7, 0.35)),
    ((0.3, 0.7, 0.35), moved(0.0, 1.2, -1.9) @ turned(0.8, 1) @ scaled(0.3, 1.2, 0.3)),
]


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(USAGE)
    try:
        main(*sys.argv[1:])
    except texelflow.TexelflowError as error:
        sys.exit(str(error))

"""Runs a model on a texture, and has its mask written to another texture, which a shader draws with.

    python examples/interpreter_with_textures.py PICTURE RESULT.png [MODEL]

It works in the moderngl context of the program: neither the picture nor the mask passes the CPU on the way, only the
finished picture is read, to be written.
"""

import sys
from typing import Any

import cv2
import moderngl
import numpy as np

import texelflow

USAGE = "usage: interpreter_with_textures.py PICTURE RESULT.png [MODEL]"

VERTICES = """
#version 430
out vec2 place;  // 0 to 1, the first row of the picture on top
void main() {
    place = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0;
    gl_Position = vec4(place * 2.0 - 1.0, 0.0, 1.0);
}
"""
SMALLER = """
#version 430
layout(binding = 0) uniform sampler2D picture;
in vec2 place;
out vec4 color;
void main() { color = texture(picture, place); }
"""
GRAY_AROUND = """
#version 430
layout(binding = 0) uniform sampler2D picture;
layout(binding = 1) uniform sampler2D mask;
in vec2 place;
out vec4 color;
void main() {
    vec3 seen = texture(picture, place).rgb;
    color = vec4(mix(vec3(dot(seen, vec3(0.2, 0.7, 0.1))), seen, texture(mask, place).r), 1.0);
}
"""


def main(picture: str, result: str, model: str = "selfie") -> None:
    """Draw the picture with its background in gray."""
    bgr = cv2.imread(picture)
    if bgr is None:
        sys.exit(f"{picture}: no picture; {USAGE}")
    rgb = cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)
    size = rgb.shape[1], rgb.shape[0]
    own: dict[str, Any] = {"backend": "egl"} if sys.platform == "linux" else {}  # no window is needed
    with (
        moderngl.create_context(standalone=True, require=430, **own) as gl,
        texelflow.Interpreter(model, context=gl) as interpreter,
    ):
        (taken,), (given, *_) = interpreter.get_input_details(), interpreter.get_output_details()
        _, height, width, _ = (int(n) for n in taken["shape"])

        seen = gl.texture(size, 3, rgb.tobytes(), alignment=1)
        seen.build_mipmaps()
        small = gl.texture((width, height), 4)  # 0 to 1, as the model takes it
        mask = gl.texture((int(given["shape"][2]), int(given["shape"][1])), 1)

        draw(gl, SMALLER, gl.framebuffer([small]), seen)
        interpreter(small, out=mask)
        target = gl.simple_framebuffer(size, 3)
        draw(gl, GRAY_AROUND, target, seen, mask)
        drawn = np.frombuffer(target.read(alignment=1), np.uint8).reshape(rgb.shape)
    cv2.imwrite(result, cv2.cvtColor(drawn, cv2.COLOR_RGB2BGR))


def draw(gl: moderngl.Context, fragments: str, target: moderngl.Framebuffer, *textures: moderngl.Texture) -> None:
    """Fill a framebuffer by a shader that reads these textures."""
    for unit, texture in enumerate(textures):
        texture.use(unit)
    target.use()
    shader = gl.program(vertex_shader=VERTICES, fragment_shader=fragments)
    gl.vertex_array(shader, []).render(moderngl.TRIANGLES, vertices=3)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(USAGE)
    try:
        main(*sys.argv[1:])
    except texelflow.TexelflowError as error:
        sys.exit(str(error))

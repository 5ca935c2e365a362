"""Runs a network in one's own moderngl program, whose shaders read its output where it lies.

    python examples/network_as_texture.py PICTURE RESULT.png [MODEL]

Nothing of the network comes back to the CPU: only the finished picture is read, to be written.
"""

import sys
from typing import Any

import cv2
import moderngl
import numpy as np

import texelflow

USAGE = "usage: network_as_texture.py PICTURE RESULT.png [MODEL]"

VERTICES = """
#version 430
out vec2 place;  // 0 to 1, the first row of the picture on top
void main() {
    place = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0;
    gl_Position = vec4(place * 2.0 - 1.0, 0.0, 1.0);
}
"""
FRAGMENTS = """
#version 430
layout(binding = 0) uniform sampler2D picture;
layout(binding = 1) uniform samplerBuffer mask;  // the network's output tensor
uniform ivec2 mask_size;
in vec2 place;
out vec4 color;
void main() {
    ivec2 at = min(ivec2(place * mask_size), mask_size - 1);
    float person = texelFetch(mask, at.y * mask_size.x + at.x).x;
    vec3 seen = texture(picture, place).rgb;
    color = vec4(mix(vec3(dot(seen, vec3(0.2, 0.7, 0.1))), seen, person), 1.0);  // the background in gray
}
"""


def main(picture: str, result: str, name: str = "selfie") -> None:
    """Draw the picture with its background in gray."""
    bgr = cv2.imread(picture)
    if bgr is None:
        sys.exit(f"{picture}: no picture; {USAGE}")
    rgb = cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB)
    model = texelflow.Model.load(name)
    _, height, width, _ = model.inputs[0].shape
    own: dict[str, Any] = {"backend": "egl"} if sys.platform == "linux" else {}  # no window is needed
    with (
        moderngl.create_context(standalone=True, require=430, **own) as gl,
        texelflow.Program(model, gl) as network,
    ):
        image = cv2.resize(rgb, (width, height), interpolation=cv2.INTER_AREA)
        network.write(model.inputs[0], (image / np.float32(255))[None])
        network.run()

        shader = gl.program(vertex_shader=VERTICES, fragment_shader=FRAGMENTS)
        shader["mask_size"] = model.outputs[0].shape[2], model.outputs[0].shape[1]
        gl.texture((rgb.shape[1], rgb.shape[0]), 3, rgb.tobytes(), alignment=1).use(0)
        network.bind_texture(model.outputs[0], unit=1)
        target = gl.simple_framebuffer((rgb.shape[1], rgb.shape[0]), 3)
        target.use()
        gl.vertex_array(shader, []).render(moderngl.TRIANGLES, vertices=3)
        drawn = np.frombuffer(target.read(alignment=1), np.uint8).reshape(rgb.shape)
    cv2.imwrite(result, cv2.cvtColor(drawn, cv2.COLOR_RGB2BGR))


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(USAGE)
    try:
        main(*sys.argv[1:])
    except texelflow.TexelflowError as error:
        sys.exit(str(error))

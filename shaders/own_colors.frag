#version 330
// A matte's output tensor goes in, the same as a texture comes out: how much lighter a person is than the frame, and the
// mask. Row 0 is the top row.
#define MASK_W 256
#define MASK_H 256
#include "texels.glsl"

out vec4 colors;

void main() {
    ivec2 at = min(ivec2(gl_FragCoord.xy), ivec2(MASK_W, MASK_H) - 1);
    colors = texel_at(at.y * MASK_W + at.x);
}

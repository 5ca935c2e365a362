#version 330
// The frame and the mask go in, a sample of both for each cell comes out: the color of the pixel in its middle, the
// mask there in alpha. The definition is in app/frame/drawing/foreground.py. Row 0 is the top row.
#include "frame.glsl"
#include "person.glsl"

uniform int side;  // pixels of the frame along a side of a cell
out vec4 cell;

void main() {
    ivec2 at = min(ivec2(gl_FragCoord.xy) * side + side / 2, ivec2(FRAME_W, FRAME_H) - 1);
    vec3 pixel = frame_at(at);
    cell = vec4(pixel, person_at(at, pixel, false));
}

#version 330
// The frame's planes go in, a few cells of a part of it come out: each is the mean of pixels of the frame there.
// Row 0 is the top row of the part.
#define FRAME_W 640
#define FRAME_H 480
// The most pixels that are read along a side of a cell.
#define MOST_TAPS 8
#include "frame.glsl"

uniform ivec2 corner;  // pixels of the frame from its upper left to that of the part
uniform int side;  // of a cell
uniform int first;  // row of the target
out vec4 mean;

void main() {
    ivec2 cell = ivec2(gl_FragCoord.xy) - ivec2(0, first);
    int taps = min(side, MOST_TAPS);
    vec3 sum = vec3(0.0);
    for (int j = 0; j < taps; j++)
        for (int i = 0; i < taps; i++) {
            ivec2 within = (2 * ivec2(i, j) + 1) * side / (2 * taps);
            sum += frame_at(clamp(corner + cell * side + within, ivec2(0), ivec2(FRAME_W, FRAME_H) - 1));
        }
    mean = vec4(sum / float(taps * taps), 1.0);
}

#version 330
// The network's output tensor for a part of the frame and the sums of the looks before it go in; how much more of a
// person that part shows around each cell than those do comes out, in red: the definition is in
// app/frame/refinement/detail.py. Row 0 is the top row.
#define CELLS 32
#include "mask.glsl"

const int SIDE = 6;  // cells around, which are compared at their corners

uniform sampler2D before;
uniform vec4 view;  // the part: left and top in parts of the grid, and by what they are multiplied within it
out vec4 more;

void main() {
    ivec2 last = textureSize(before, 0) - 1, last_seen = ivec2(MASK_W, MASK_H) - 1;
    float sum = 0.0;
    for (int i = 0; i < SIDE * SIDE; i++) {
        vec2 place = (gl_FragCoord.xy + vec2(i % SIDE, i / SIDE) - 0.5 * float(SIDE - 1)) / float(CELLS);
        vec2 seen = (place - view.xy) * view.zw * vec2(MASK_W, MASK_H);
        ivec2 at = clamp(ivec2(floor(seen)), ivec2(0), last_seen);
        vec4 sums = texelFetch(before, clamp(ivec2(floor(place * vec2(last + 1))), ivec2(0), last), 0);
        sum += clamp(mask_at(at.x, at.y), 0.0, 1.0) - 1.0 / (1.0 + exp(-sums.r / sums.g));
    }
    more = vec4(sum / float(SIDE * SIDE), vec3(0.0));
}

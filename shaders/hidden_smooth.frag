#version 330
// One direction of a Gaussian over the cells of one part: cells go in, the same smoothed come out. Those at the edge are
// repeated beyond it.
#define REACH 6

uniform sampler2D cells;
uniform int across;  // cells along a side of the part
uniform int first;  // row of the cells
uniform ivec2 direction;  // (1, 0) or (0, 1)
uniform float weights[REACH + 1];  // by distance
out vec4 smoothed;

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy) - ivec2(0, first);
    vec4 sum = vec4(0.0);
    for (int i = -REACH; i <= REACH; i++)
        sum += weights[abs(i)] * texelFetch(cells, clamp(at + i * direction, ivec2(0), ivec2(across - 1)) + ivec2(0, first), 0);
    smoothed = sum;
}

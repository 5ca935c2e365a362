#version 330
// One direction of a Gaussian: a picture goes in, the same picture smoothed along rows or columns comes out. The edge
// pixels are repeated beyond the edges.
#define MOST_REACH 8

uniform sampler2D cells;
uniform ivec2 size;  // of the part of the texture that is the picture
uniform ivec2 direction;  // (1, 0) or (0, 1)
uniform int reach;  // the largest distance of a sample
uniform float weights[MOST_REACH + 1];  // by distance
out vec4 smoothed;

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    smoothed = vec4(0.0);
    for (int i = -reach; i <= reach; i++)
        smoothed += weights[abs(i)] * texelFetch(cells, clamp(at + i * direction, ivec2(0), size - 1), 0);
}

#version 330
// One direction of a Gaussian: a picture goes in, the same picture smoothed along rows or columns comes out. Beyond its
// edges the picture repeats its outermost pixels.
#define MOST_TAPS 9

uniform sampler2D cells;
uniform ivec2 size;  // of the part of the texture that is the picture
uniform ivec2 direction;  // (1, 0) or (0, 1)
uniform float weights[MOST_TAPS + 1];  // by distance
out vec4 smoothed;

vec4 pixel(ivec2 at) {
    return texelFetch(cells, clamp(at, ivec2(0), size - 1), 0);
}

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    smoothed = weights[0] * pixel(at);
    for (int i = 1; i <= MOST_TAPS; i++)
        smoothed += weights[i] * (pixel(at - i * direction) + pixel(at + i * direction));
}

#version 330
// What crop_across.frag made goes in, the part of the frame comes out as high as the frame, interpolated along columns.
#define FRAME_H 480
#define PARTS 65536
#include "sampling.glsl"
#include "cubic.glsl"

uniform sampler2D across;
uniform ivec2 steps;
uniform ivec2 begin;
out vec4 picture;

vec4 tap(int x, int y) {
    return texelFetch(across, ivec2(x, clamp(y, 0, FRAME_H - 1)), 0);
}

void main() {
    int x = int(gl_FragCoord.x), y;
    float part;
    locate(int(gl_FragCoord.y), steps.y, begin.y, PARTS, y, part);
    vec4 share = cubic(part);
    picture = share.x * tap(x, y - 1) + share.y * tap(x, y) + share.z * tap(x, y + 1) + share.w * tap(x, y + 2);
}

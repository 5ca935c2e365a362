#version 330
// The frame's planes go in, a part of the frame comes out, as wide as the frame, interpolated along its rows: the
// definition is in app/frame/drawing/cropped_frame.py. Row 0 is the top row.
#define FRAME_W 640
#define PARTS 65536
#include "frame.glsl"
#include "cubic.glsl"

uniform ivec2 steps;  // from pixel to pixel, in parts of a pixel
uniform ivec2 begin;  // where the first pixel samples the frame
out vec4 picture;

vec3 tap(int x, int y) {
    return frame_at(ivec2(clamp(x, 0, FRAME_W - 1), y));
}

void main() {
    int x, y = int(gl_FragCoord.y);
    float part;
    locate(int(gl_FragCoord.x), steps.x, begin.x, PARTS, x, part);
    vec4 share = cubic(part);
    vec3 sum = share.x * tap(x - 1, y) + share.y * tap(x, y) + share.z * tap(x + 1, y) + share.w * tap(x + 2, y);
    picture = vec4(sum, 1.0);
}

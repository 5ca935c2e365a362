#version 330
// The frame's planes go in, a part of the frame comes out, enlarged and interpolated: the definition is in
// app/frame/drawing/cropped_frame.py. Row 0 is the top row.
// A pixel of the frame has so many parts, in which places are counted.
#define PARTS 65536
#include "frame.glsl"

uniform ivec2 steps;  // from pixel to pixel
uniform ivec2 begin;  // where the first pixel samples the frame
out vec4 picture;

void main() {
    picture = vec4(frame_between(ivec2(gl_FragCoord.xy), steps, begin, ivec2(PARTS)), 1.0);
}

#version 330
// The frame and the mask go in, the mask of every pixel of the frame comes out, with the look's curve. Row 0 is the top
// row.
#include "frame.glsl"
#include "person.glsl"

out float mask;

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    mask = person_at(at, frame_at(at), true);
}

#version 330
// The frame and the mask go in, the mask of every pixel of the frame comes out, with the look's curve. Row 0 is the top
// row.
#include "frame.glsl"
#include "mask_over.glsl"
#include "look.glsl"

out float mask;

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    mask = shaped(mask_over(at, frame_at(at), true));
}

#version 330
// The frame's planes go in, the frame as it is comes out. A target larger than it repeats its last row and column.
#define FRAME_W 640
#define FRAME_H 480
#include "frame.glsl"
#include "look.glsl"

uniform int height;  // of the target, counted from the bottom
out vec4 picture;

void main() {
    ivec2 drawn = ivec2(gl_FragCoord.xy);
    ivec2 place = min(ivec2(drawn.x, height - 1 - drawn.y), ivec2(FRAME_W, FRAME_H) - 1);
    picture = vec4(frame_at(mirrored(place)), 1.0);
}

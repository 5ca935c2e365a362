#version 330
// The frame's planes and the network's output tensor go in, the picture with its effect comes out.
// A target larger than the frame repeats the frame's last row and column.
#define FRAME_W 640
#define FRAME_H 480
#define X_STEP 512
#define X_START -384
#define X_DEN 1280
#define Y_STEP 512
#define Y_START -224
#define Y_DEN 960
// Whether parts of the frame were cropped away.
#define UNSEEN 0
// 0 tints the person, 1 puts an image behind, 2 a colour, 3 shows the mask. No uniform: software GL would do all four.
#define EFFECT 0
#include "frame.glsl"
#include "mask.glsl"

uniform sampler2D background;  // of the frame's size
uniform vec4 color;  // a is the strength of a tint
uniform int height;  // of a target whose first row is the lowest, else 0
out vec4 picture;

float clamped(int x, int y) {
    return mask_at(clamp(x, 0, MASK_W - 1), clamp(y, 0, MASK_H - 1));
}

float mask_over(ivec2 at) {
#if UNSEEN
    if (!is_inside(at.x, X_STEP, X_START, X_DEN, MASK_W)) return 0.0;
    if (!is_inside(at.y, Y_STEP, Y_START, Y_DEN, MASK_H)) return 0.0;
#endif
    int x, y;
    float x_part, y_part;
    locate(at.x, X_STEP, X_START, X_DEN, x, x_part);
    locate(at.y, Y_STEP, Y_START, Y_DEN, y, y_part);
    float above = mix(clamped(x, y), clamped(x + 1, y), x_part);
    float below = mix(clamped(x, y + 1), clamped(x + 1, y + 1), x_part);
    return mix(above, below, y_part);
}

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    if (height > 0) at.y = height - 1 - at.y;
    at = min(at, ivec2(FRAME_W, FRAME_H) - 1);
    vec3 pixel = frame_at(at);
    float person = clamp(mask_over(at), 0.0, 1.0);
#if EFFECT == 0
    pixel = mix(pixel, color.rgb, color.a * person);
#elif EFFECT == 1
    pixel = mix(texelFetch(background, at, 0).rgb, pixel, person);
#elif EFFECT == 2
    pixel = mix(color.rgb, pixel, person);
#else
    pixel = vec3(person);
#endif
    picture = vec4(pixel, 1.0);
}

// The mask at a pixel of the frame, whose colour goes in as well, interpolated: the definition is in
// app/frame/preprocess.py, that of a refined one in app/frame/refine.py.
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
// Whether the mask comes from a texture of coefficients, mask = dot(rgb, colour) + alpha, instead of the tensor.
#define REFINED 0
// Pixels of the network's grid along a side of a cell, if there are fewer coefficients than such pixels.
#define CELL 2
#include "sampling.glsl"
#include "mask.glsl"

#if REFINED
uniform sampler2D coefficients;

vec4 coefficients_at(vec2 place) {
    ivec2 size = textureSize(coefficients, 0), last = size - 1;
    if (size != ivec2(MASK_W, MASK_H)) place = (place + 0.5) / float(CELL) - 0.5;
    ivec2 first = ivec2(floor(place));
    vec2 part = place - vec2(first);
    ivec2 near = clamp(first, ivec2(0), last), far = clamp(first + 1, ivec2(0), last);
    vec4 above = mix(texelFetch(coefficients, near, 0), texelFetch(coefficients, ivec2(far.x, near.y), 0), part.x);
    vec4 below = mix(texelFetch(coefficients, ivec2(near.x, far.y), 0), texelFetch(coefficients, far, 0), part.x);
    return mix(above, below, part.y);
}
#else
float clamped(int x, int y) {
    return mask_at(clamp(x, 0, MASK_W - 1), clamp(y, 0, MASK_H - 1));
}
#endif

float mask_over(ivec2 at, vec3 pixel) {
#if UNSEEN
    if (!is_inside(at.x, X_STEP, X_START, X_DEN, MASK_W)) return 0.0;
    if (!is_inside(at.y, Y_STEP, Y_START, Y_DEN, MASK_H)) return 0.0;
#endif
    int x, y;
    float x_part, y_part;
    locate(at.x, X_STEP, X_START, X_DEN, x, x_part);
    locate(at.y, Y_STEP, Y_START, Y_DEN, y, y_part);
#if REFINED
    vec4 coefficient = coefficients_at(vec2(x, y) + vec2(x_part, y_part));
    return clamp(dot(coefficient.rgb, pixel) + coefficient.a, 0.0, 1.0);
#else
    float above = mix(clamped(x, y), clamped(x + 1, y), x_part);
    float below = mix(clamped(x, y + 1), clamped(x + 1, y + 1), x_part);
    return clamp(mix(above, below, y_part), 0.0, 1.0);
#endif
}

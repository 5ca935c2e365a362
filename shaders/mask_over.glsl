// The mask at a pixel of the frame, whose color goes in as well, interpolated: the definition is in
// app/picture/preprocess.py, that of a refined one, which may be softened, in app/frame/refinement/guided.py.
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
// Whether the mask comes from a texture of coefficients, mask = dot(rgb, color) + alpha, instead of the tensor. The
// texture covers the network's grid, padded to a multiple of so many pixels.
#define REFINED 0
#define CELL 2
// Whether the device interpolates between coefficients by itself.
#define FILTERED 1
#include "covering.glsl"
#include "mask.glsl"

#if REFINED
uniform sampler2D coefficients;

const ivec2 GRID = (ivec2(MASK_W, MASK_H) + CELL - 1) / CELL * CELL;
const float MOST_APART = 1.17;  // difference of two brightnesses; limited range has codes beyond black and white
#else
float clamped(int x, int y) {
    return mask_at(clamp(x, 0, MASK_W - 1), clamp(y, 0, MASK_H - 1));
}
#endif

float mask_over(ivec2 at, vec3 pixel, bool softened) {
#if UNSEEN
    if (!is_covered(at, ivec2(MASK_W, MASK_H))) return 0.0;
#endif
#if REFINED
    vec2 place = covering(at);
#if FILTERED
    vec4 coefficient = textureLod(coefficients, (place + 0.5) / vec2(GRID), 0.0);
#else
    ivec2 last = textureSize(coefficients, 0) - 1;
    vec2 cell = (place + 0.5) / vec2(GRID) * vec2(last + 1) - 0.5, part = fract(cell);
    ivec2 near = clamp(ivec2(floor(cell)), ivec2(0), last);
    ivec2 far = clamp(ivec2(floor(cell)) + 1, ivec2(0), last);
    vec4 above = mix(texelFetch(coefficients, near, 0), texelFetch(coefficients, ivec2(far.x, near.y), 0), part.x);
    vec4 below = mix(texelFetch(coefficients, ivec2(near.x, far.y), 0), texelFetch(coefficients, far, 0), part.x);
    vec4 coefficient = mix(above, below, part.y);
#endif
    float told = dot(coefficient.rgb, pixel) + coefficient.a, sum = clamp(told, 0.0, 1.0);
    float slope = coefficient.r + coefficient.g + coefficient.b;  // per brightness
    bool same = abs(told - 0.5) >= 0.5 + MOST_APART * abs(slope);  // all are 0, or all are 1
    int corners = softened && !same ? 4 : 0;
    told -= slope * brightness(at);
    for (int i = 0; i < corners; i++) {
        ivec2 across = clamp(at + 2 * ivec2(i % 2, i / 2) - 1, ivec2(0), ivec2(FRAME_W, FRAME_H) - 1);
        sum += clamp(told + slope * brightness(across), 0.0, 1.0);
    }
    return sum / float(corners + 1);
#else
    int x, y;
    float x_part, y_part;
    locate_covering(at, x, x_part, y, y_part);
    float above = mix(clamped(x, y), clamped(x + 1, y), x_part);
    float below = mix(clamped(x, y + 1), clamped(x + 1, y + 1), x_part);
    return clamp(mix(above, below, y_part), 0.0, 1.0);
#endif
}

// The frame's planes as they were uploaded go in, red, green and blue of upright pixels come out: the definition is in
// app/frame/preprocess.py. Pixels of luma and of chroma are counted from the first stored row and column.
#define STORED_W 640
#define STORED_H 480
// 0 RGBA; 1 grey; 2 luma and two planes of chroma; 3 luma and a plane of both chromas.
#define LAYOUT 0
// How upright pixels become stored ones: columns and rows are exchanged first, then stored ones mirrored.
#define TRANSPOSE 0
#define MIRROR_X 0
#define MIRROR_Y 0
// Planes of chroma: their size, and where luma's coordinate i lies in them, (i * mul + add) / div.
#define CHROMA_W 320
#define CHROMA_H 240
#define CHROMA_MUL ivec2(1, 2)
#define CHROMA_ADD ivec2(0, -1)
#define CHROMA_DIV ivec2(2, 4)
// Red, green and blue are TO_RGB * samples + OFFSET.
#define TO_RGB mat3(1.0)
#define OFFSET vec3(0.0)
#include "sampling.glsl"

#if __VERSION__ >= 420
#define PLANE(unit) layout(binding = unit) uniform sampler2D
#else
#define PLANE(unit) uniform sampler2D
#endif
PLANE(0) frame_0;
#if LAYOUT >= 2
PLANE(1) frame_1;
#endif
#if LAYOUT == 2
PLANE(2) frame_2;
#endif

const ivec2 STORED = ivec2(STORED_W, STORED_H), CHROMA = ivec2(CHROMA_W, CHROMA_H);

// 1 for stored axes that run against the upright frame's.
const ivec2 MIRRORED = ivec2(MIRROR_X, MIRROR_Y);

// Columns and rows of the upright frame in the order of the stored one.
ivec2 stored_order(ivec2 at) {
    return TRANSPOSE == 1 ? at.yx : at;
}

// Where (at * step + start) / den lies in a plane: the four pixels around it, and the weights of the further ones.
struct Taps { ivec2 near, far; vec2 part; };

Taps taps(ivec2 size, ivec2 at, ivec2 step, ivec2 start, ivec2 den) {
    ivec2 whole;
    vec2 part;
    locate(at.x, step.x, start.x, den.x, whole.x, part.x);
    locate(at.y, step.y, start.y, den.y, whole.y, part.y);
    return Taps(clamp(whole, ivec2(0), size - 1), clamp(whole + 1, ivec2(0), size - 1), part);
}

vec4 between(sampler2D plane, Taps t) {
    vec4 top = mix(texelFetch(plane, t.near, 0), texelFetch(plane, ivec2(t.far.x, t.near.y), 0), t.part.x);
    vec4 bottom = mix(texelFetch(plane, ivec2(t.near.x, t.far.y), 0), texelFetch(plane, t.far, 0), t.part.x);
    return mix(top, bottom, t.part.y);
}

// Red, green and blue from a sample of the first plane, and from chroma at luma's (at * step + start) / den.
vec3 color_of(vec4 first, ivec2 at, ivec2 step, ivec2 start, ivec2 den) {
#if LAYOUT == 0
    return first.rgb;
#elif LAYOUT == 1
    vec3 samples = first.rrr;
#else
    Taps t = taps(CHROMA, at, step * CHROMA_MUL, start * CHROMA_MUL + CHROMA_ADD * den, den * CHROMA_DIV);
#if LAYOUT == 2
    vec3 samples = vec3(first.r, between(frame_1, t).r, between(frame_2, t).r);
#else
    vec3 samples = vec3(first.r, between(frame_1, t).rg);
#endif
#endif
#if LAYOUT > 0
    return clamp(TO_RGB * samples + OFFSET, 0.0, 1.0);
#endif
}

// A pixel of the upright frame.
vec3 frame_at(ivec2 at) {
    at = stored_order(at);
    at += MIRRORED * (STORED - 1 - 2 * at);
    return color_of(texelFetch(frame_0, at, 0), at, ivec2(1), ivec2(0), ivec2(1));
}

// The upright frame at (at * step + start) / den, interpolated between pixels, the outermost of which repeat.
vec3 frame_between(ivec2 at, ivec2 step, ivec2 start, ivec2 den) {
    at = stored_order(at), step = stored_order(step), start = stored_order(start), den = stored_order(den);
    start += MIRRORED * ((STORED - 1) * den - 2 * start);
    step -= MIRRORED * 2 * step;
    return color_of(between(frame_0, taps(STORED, at, step, start, den)), at, step, start, den);
}

// The frame's planes as they were uploaded go in, red, green and blue of upright pixels come out: the definition is in
// app/picture/preprocess.py. Pixels of luma and of chroma are counted from the first stored row and column.
#define STORED_W 640
#define STORED_H 480
// 0 RGBA; 1 gray; 2 luma and two planes of chroma; 3 luma and a plane of both chromas; 4 one plane of luma and, in turn,
// the one and the other chroma of two pixels; 5 the same with chroma first.
#define LAYOUT 0
// Whether a sample of 16 bits comes as two of 8, the lower one in red: OpenGL ES need not have textures of 16.
#define APART 0
// From upright to stored pixels: columns and rows are swapped first, then stored ones are mirrored.
#define TRANSPOSE 0
#define MIRROR_X 0
#define MIRROR_Y 0
// Chroma planes: their size, and the position (i * mul + add) / div of luma's coordinate i in them.
#define CHROMA_W 320
#define CHROMA_H 240
#define CHROMA_MUL ivec2(1, 2)
#define CHROMA_ADD ivec2(0, -1)
#define CHROMA_DIV ivec2(2, 4)
// Red, green and blue are TO_RGB * samples + OFFSET.
#define TO_RGB mat3(1.0)
#define OFFSET vec3(0.0)
#ifndef GL_ES
#extension GL_ARB_texture_gather : enable
#endif
#include "sampling.glsl"

#if __VERSION__ >= 420 || defined(GL_ES)
#define PLANE(unit) layout(binding = unit) uniform sampler2D
#else
#define PLANE(unit) uniform sampler2D
#endif
PLANE(0) frame_0;
#if LAYOUT == 2 || LAYOUT == 3
PLANE(1) frame_1;
#endif
#if LAYOUT == 2
PLANE(2) frame_2;
#endif

const ivec2 STORED = ivec2(STORED_W, STORED_H), CHROMA = ivec2(CHROMA_W, CHROMA_H);

// 1 for stored axes that run opposite to the upright frame's.
const ivec2 MIRRORED = ivec2(MIRROR_X, MIRROR_Y);

// Columns and rows of the upright frame in the order of the stored one.
ivec2 stored_order(ivec2 at) {
    return TRANSPOSE == 1 ? at.yx : at;
}

// Where (at * step + start) / den lies in a plane: the first of the four pixels around it, and the further ones' weights.
struct Place { ivec2 whole; vec2 part; };

Place place(ivec2 at, ivec2 step, ivec2 start, ivec2 den) {
    Place p;
    locate(at.x, step.x, start.x, den.x, p.whole.x, p.part.x);
    locate(at.y, step.y, start.y, den.y, p.whole.y, p.part.y);
    return p;
}

// All samples of a stored pixel.
vec4 samples_at(sampler2D plane, ivec2 at) {
    vec4 found = texelFetch(plane, at, 0);
#if APART
    found.r = dot(found.rg, vec2(255.0, 65280.0) / 65535.0);
#endif
    return found;
}

// All samples of a plane's pixels; edge pixels are repeated.
vec4 between(sampler2D plane, ivec2 size, Place p) {
    ivec2 near = clamp(p.whole, ivec2(0), size - 1), far = clamp(p.whole + 1, ivec2(0), size - 1);
    vec4 top = mix(samples_at(plane, near), samples_at(plane, ivec2(far.x, near.y)), p.part.x);
    vec4 bottom = mix(samples_at(plane, ivec2(near.x, far.y)), samples_at(plane, far), p.part.x);
    return mix(top, bottom, p.part.y);
}

// The same for a plane with one sample per pixel; all four are fetched at once where possible.
float single(sampler2D plane, ivec2 size, Place p) {
#if !APART && (__VERSION__ >= 400 || defined(GL_ES) || defined(GL_ARB_texture_gather))
    vec4 four = textureGather(plane, (vec2(p.whole) + 1.0) / vec2(size));  // from the corner that they share
    vec2 rows = mix(four.wx, four.zy, p.part.x);
    return mix(rows.x, rows.y, p.part.y);
#else
    return between(plane, size, p).r;
#endif
}

#if LAYOUT == 5
#define LUMA g
#define BESIDE_LUMA r
#else
#define LUMA r
#define BESIDE_LUMA g
#endif

#if LAYOUT >= 4
// Both chromas of a pair of pixels.
vec2 pair(ivec2 at) {
    ivec2 first = ivec2(2 * at.x, at.y);
    return vec2(texelFetch(frame_0, first, 0).BESIDE_LUMA, texelFetch(frame_0, first + ivec2(1, 0), 0).BESIDE_LUMA);
}

// Both chromas between pairs, as `between` does for planes.
vec2 between_pairs(Place p) {
    ivec2 near = clamp(p.whole, ivec2(0), CHROMA - 1), far = clamp(p.whole + 1, ivec2(0), CHROMA - 1);
    vec2 top = mix(pair(near), pair(ivec2(far.x, near.y)), p.part.x);
    vec2 bottom = mix(pair(ivec2(near.x, far.y)), pair(far), p.part.x);
    return mix(top, bottom, p.part.y);
}
#endif

// Red, green and blue of luma and both chromas.
vec3 to_rgb(vec3 samples) {
    return clamp(TO_RGB * samples + OFFSET, 0.0, 1.0);
}

// Red, green and blue from a sample of the first plane, and from chroma at luma's (at * step + start) / den.
vec3 color_of(vec4 first, ivec2 at, ivec2 step, ivec2 start, ivec2 den) {
#if LAYOUT == 0
    return first.rgb;
#elif LAYOUT == 1
    return to_rgb(first.rrr);
#else
    Place p = place(at, step * CHROMA_MUL, start * CHROMA_MUL + CHROMA_ADD * den, den * CHROMA_DIV);
#if LAYOUT == 2
    return to_rgb(vec3(first.r, single(frame_1, CHROMA, p), single(frame_2, CHROMA, p)));
#elif LAYOUT == 3
    return to_rgb(vec3(first.r, between(frame_1, CHROMA, p).rg));
#else
    return to_rgb(vec3(first.LUMA, between_pairs(p)));
#endif
#endif
}

// Where a pixel of the upright frame is stored.
ivec2 stored(ivec2 at) {
    at = stored_order(at);
    return at + MIRRORED * (STORED - 1 - 2 * at);
}

// A pixel of the upright frame.
vec3 frame_at(ivec2 at) {
    at = stored(at);
    return color_of(samples_at(frame_0, at), at, ivec2(1), ivec2(0), ivec2(1));
}

// The term that luma adds to red, green and blue of a pixel of the upright frame; BT.601's luma for RGB frames.
float brightness(ivec2 at) {
    vec4 first = samples_at(frame_0, stored(at));
#if LAYOUT == 0
    return dot(first.rgb, vec3(0.299, 0.587, 0.114));
#else
    return TO_RGB[0].r * first.LUMA;
#endif
}

// The upright frame at (at * step + start) / den, interpolated between pixels; edge pixels are repeated.
vec3 frame_between(ivec2 at, ivec2 step, ivec2 start, ivec2 den) {
    at = stored_order(at), step = stored_order(step), start = stored_order(start), den = stored_order(den);
    start += MIRRORED * ((STORED - 1) * den - 2 * start);
    step -= MIRRORED * 2 * step;
    Place p = place(at, step, start, den);
#if LAYOUT == 1 || LAYOUT == 2
    vec4 first = vec4(single(frame_0, STORED, p));
#else
    vec4 first = between(frame_0, STORED, p);
#endif
    return color_of(first, at, step, start, den);
}

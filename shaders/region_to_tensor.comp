#version 430
// A rotated region of a frame goes in, the network's input comes out (PHWC4, one slice): the definition is in
// app/picture/region_cut.py.
#define GROUP_X 16
#define GROUP_Y 8
#define TENSOR_W 256
#define TENSOR_H 256
#define LOW 0.0
#define HIGH 1.0
// Whether the frame's edge goes on past it, which is black otherwise.
#define REPEATS 0
// Whether the frame's light is multiplied by its gain.
#define LIGHTENS 0
// Whether the tensor is of whole numbers, from LEAST to MOST: steps of a quantized network.
#define WHOLE 0
#define LEAST 0.0
#define MOST 255.0
#include "frame.glsl"
#include "requantize.glsl"

layout(local_size_x = GROUP_X, local_size_y = GROUP_Y) in;
layout(std430, binding = 0) writeonly buffer Tensor { vec4 tensor[]; };
#if LIGHTENS
layout(std430, binding = 1) readonly buffer Exposure { float gain; };
#endif
// From (x, y, 1) of the tensor to the column and the row of the stored picture, then of the planes of chroma.
layout(location = 0) uniform vec3 column;
layout(location = 1) uniform vec3 row;
#if LAYOUT >= 2
layout(location = 2) uniform vec3 chroma_column;
layout(location = 3) uniform vec3 chroma_row;
#endif

// A place in a plane, which may be far outside.
Place place_at(vec2 at, ivec2 size) {
    vec2 inside = clamp(at, vec2(0.0), vec2(size - 1)), whole = floor(inside);
    return Place(ivec2(whole), inside - whole);
}

vec3 color_at(vec2 at, vec2 chroma) {
    Place p = place_at(at, STORED);
#if LAYOUT == 0
    return between(frame_0, STORED, p).rgb;
#elif LAYOUT == 1
    return to_rgb(vec3(single(frame_0, STORED, p)));
#else
    Place q = place_at(chroma, CHROMA);
#if LAYOUT == 2
    return to_rgb(vec3(single(frame_0, STORED, p), single(frame_1, CHROMA, q), single(frame_2, CHROMA, q)));
#elif LAYOUT == 3
    return to_rgb(vec3(single(frame_0, STORED, p), between(frame_1, CHROMA, q).rg));
#else
    return to_rgb(vec3(between(frame_0, STORED, p).LUMA, between_pairs(q)));
#endif
#endif
}

void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (at.x >= TENSOR_W || at.y >= TENSOR_H) return;
    vec3 pixel = vec3(at, 1);
    vec2 stored_at = vec2(dot(column, pixel), dot(row, pixel)), chroma_at = vec2(0.0);
#if LAYOUT >= 2
    chroma_at = vec2(dot(chroma_column, pixel), dot(chroma_row, pixel));
#endif
    vec3 color = color_at(stored_at, chroma_at);
#if !REPEATS
    vec2 cover = clamp(min(stored_at + 1.0, vec2(STORED) - stored_at), 0.0, 1.0);
    color *= cover.x * cover.y;
#endif
#if LIGHTENS
    color = min(gain * color, 1.0);
#endif
    color = LOW + (HIGH - LOW) * color;
#if WHOLE
    color = clamp(round_away(vec4(color, 0.0)).rgb, LEAST, MOST);
#endif
    tensor[at.y * TENSOR_W + at.x] = vec4(color, 0.0);
}

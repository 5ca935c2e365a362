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
// (a, b, c, bits), with which (a x + b y + c) >> bits, of a pixel of the tensor, is the column or the row of the stored
// picture, then of the planes of chroma, in 32nds.
layout(location = 0) uniform ivec4 column;
layout(location = 1) uniform ivec4 row;
#if LAYOUT >= 2
layout(location = 2) uniform ivec4 chroma_column;
layout(location = 3) uniform ivec4 chroma_row;
#endif

ivec2 parts_at(ivec2 at, ivec4 x, ivec4 y) {
    return ivec2(at.x * x.x + (at.y * x.y + x.z), at.x * y.x + (at.y * y.y + y.z)) >> ivec2(x.w, y.w);
}

// A place in a plane, which may be far outside.
Place place_at(ivec2 parts, ivec2 size) {
    ivec2 inside = clamp(parts, ivec2(0), 32 * (size - 1));
    return Place(inside >> 5, vec2(inside & 31) / 32.0);
}

vec3 color_at(ivec2 at, ivec2 chroma) {
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
    ivec2 stored_at = parts_at(at, column, row), chroma_at = ivec2(0);
#if LAYOUT >= 2
    chroma_at = parts_at(at, chroma_column, chroma_row);
#endif
    vec3 color = 255.0 * color_at(stored_at, chroma_at);
#if !REPEATS
    vec2 cover = vec2(clamp(min(stored_at + 32, 32 * STORED - stored_at), 0, 32)) / 32.0;
    color *= cover.x * cover.y;
#endif
    color = floor(color + (0.5 + 1.0 / 4096.0));  // mixed bytes are whole 1024ths
#if LIGHTENS
    color = min(gain * color, 255.0);
#endif
    color = LOW + (HIGH - LOW) / 255.0 * color;
#if WHOLE
    color = clamp(round_away(vec4(color, 0.0)).rgb, LEAST, MOST);
#endif
    tensor[at.y * TENSOR_W + at.x] = vec4(color, 0.0);
}

#version 430
// A frame's planes go in, the factor by which its light is multiplied for the network comes out: the definition is in
// app/picture/preprocess.py. One work-group does it all.
#define GROUP_X 64
// The columns and rows of the stored picture whose crossings are the samples.
#define COLUMNS int[](0, 1)
#define ROWS int[](0, 1)
// Codes of luma have so many bits more than eight; the largest number of the texture.
#define SHIFT 0
#define LARGEST 255.0
#define BLACK 0.0
#define WHITE 255.0
#define SHARE 20
#define BRIGHT 0.5
#define MOST_GAIN 3.0
#define STEADY 0.1
#define JUMP 0.25
#include "frame.glsl"

layout(local_size_x = GROUP_X) in;
layout(std430, binding = 0) buffer Exposure { float gain; };  // 0 before the first picture

const int columns[] = COLUMNS, rows[] = ROWS;
const int samples = columns.length() * rows.length();
shared int samples_by_code[256];

int code_at(ivec2 at) {
    vec4 first = samples_at(frame_0, at);
#if LAYOUT == 0
    ivec3 codes = ivec3(first.rgb * 255.0 + 0.5);
    return (77 * codes.r + 150 * codes.g + 29 * codes.b + 128) >> 8;
#else
    return min(int(first.LUMA * LARGEST + 0.5) >> SHIFT, 255);
#endif
}

void main() {
    int thread = int(gl_LocalInvocationIndex);
    for (int code = thread; code < 256; code += GROUP_X) samples_by_code[code] = 0;
    barrier();
    for (int n = thread; n < samples; n += GROUP_X)
        atomicAdd(samples_by_code[code_at(ivec2(columns[n % columns.length()], rows[n / columns.length()]))], 1);
    barrier();
    if (thread != 0) return;
    int level = 255, reached = samples_by_code[level];
    while (reached * SHARE <= samples) reached += samples_by_code[--level];
    float light = (float(level) - BLACK) / (WHITE - BLACK), ratio = light > 0.0 ? BRIGHT / light : MOST_GAIN;
    float now = clamp(ratio * ratio, 1.0, MOST_GAIN), before = gain;
    gain = abs(now - before) <= JUMP * before ? before + STEADY * (now - before) : now;
}

#version 430
// A tensor of steps goes in; an array of bytes, BHWC, in whole words comes out. A thread makes one word.
#define GROUP 256
#define PIXELS 8  // of the whole batch
#define CHANNELS 3
#define SIGNED 1
#define ZERO_POINT 0

layout(local_size_x = GROUP) in;

#include "vocabulary.glsl"
#include "bytes.glsl"

//@ bindings
layout(binding = 1) uniform samplerBuffer in0_texels;
#define in0(i) texelFetch(in0_texels, i)
layout(std430, binding = 0) writeonly buffer Out0 { uint out0[]; };
//@ end

const int VALUES = PIXELS * CHANNELS, WORDS = (VALUES + 3) / 4;

void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    int word = min(int(at.y * uint(GROUP) * gl_NumWorkGroups.x + at.x), WORDS - 1);
    vec4 v = vec4(0.0);
#if CHANNELS % 4 == 0
    int slices = CHANNELS / 4;
    v = READ(in0, word % slices * PIXELS + word / slices);
#else
    for (int lane = 0; lane < 4; lane++) {
        int value = min(4 * word + lane, VALUES - 1), channel = value % CHANNELS;
        v[lane] = READ(in0, channel / 4 * PIXELS + value / CHANNELS)[channel % 4];
    }
#endif
    WRITE(out0, word, word_of(v, SIGNED == 1, ZERO_POINT));
}

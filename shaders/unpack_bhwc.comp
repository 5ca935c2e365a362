#version 430
// A tensor in PHWC4 goes in; an array of floats, BHWC, comes out. A thread reads one texel.
#define GROUP 256
#define PIXELS 8  // of the whole batch
#define CHANNELS 3

layout(local_size_x = GROUP) in;

#include "vocabulary.glsl"

//@ bindings
layout(binding = 1) uniform samplerBuffer in0_texels;
#define in0(i) texelFetch(in0_texels, i)
layout(std430, binding = 0) writeonly buffer Out0 { float out0[]; };
//@ end

const int SLICES = (CHANNELS + 3) / 4;

void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    int thread = min(int(at.y * uint(GROUP) * gl_NumWorkGroups.x + at.x), PIXELS * SLICES - 1);
    int slice = thread / PIXELS, pixel = thread % PIXELS;
    vec4 v = READ(in0, thread);
    for (int lane = 0; lane < 4; lane++)
        if (4 * slice + lane < CHANNELS) WRITE(out0, pixel * CHANNELS + 4 * slice + lane, v[lane]);
}

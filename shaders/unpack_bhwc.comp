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
    int stride = GROUP * int(gl_NumWorkGroups.x);
    for (int slice = int(gl_GlobalInvocationID.z); slice < SLICES; slice += int(gl_NumWorkGroups.z))
        for (int pixel = int(gl_GlobalInvocationID.x); pixel < PIXELS; pixel += stride) {
            vec4 v = READ(in0, slice * PIXELS + pixel);
            for (int lane = 0; lane < 4; lane++)
                if (4 * slice + lane < CHANNELS) WRITE(out0, pixel * CHANNELS + 4 * slice + lane, v[lane]);
        }
}

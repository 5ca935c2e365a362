#version 430
// A tensor as an array of floats, BHWC, goes in; PHWC4 comes out. A thread makes one slice of four pixels: their floats
// begin at a whole texel of the array, whatever the number of channels, so that four are read at a time.
#define GROUP 256
#define PIXELS 8  // of the whole batch
#define CHANNELS 3

layout(local_size_x = GROUP) in;

#include "vocabulary.glsl"

//@ bindings
layout(binding = 1) uniform samplerBuffer in0_texels;
#define in0(i) texelFetch(in0_texels, i)
layout(std430, binding = 0) writeonly buffer Out0 { vec4 out0[]; };
//@ end

const int QUADS = (PIXELS + 3) / 4, SLICES = (CHANNELS + 3) / 4, LAST_TEXEL = (PIXELS * CHANNELS + 3) / 4 - 1;

// Four floats of the array, the first of them in lane `lane` of a texel.
vec4 floats(int texel, int lane) {
    vec4 a = READ(in0, min(texel, LAST_TEXEL)), b = READ(in0, min(texel + 1, LAST_TEXEL));
    return lane == 0 ? a : lane == 1 ? vec4(a.yzw, b.x) : lane == 2 ? vec4(a.zw, b.xy) : vec4(a.w, b.xyz);
}

void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    int thread = min(int(at.y * uint(GROUP) * gl_NumWorkGroups.x + at.x), QUADS * SLICES - 1);
    int slice = thread / QUADS, quad = thread % QUADS;
    for (int k = 0; k < 4; k++) {
        int before = k * CHANNELS, pixel = 4 * quad + k;  // floats from the first of the four pixels to this one
        vec4 v = floats(quad * CHANNELS + before / 4 + slice, before % 4);
        if (pixel < PIXELS) WRITE(out0, slice * PIXELS + pixel, keep(v, CHANNELS - 4 * slice));
    }
}

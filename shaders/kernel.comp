#version 430
// The frame of every network kernel. The lines marked with //@ are where the engine puts what a group of ops
// needs; as it stands it copies one slice.
#define LOCAL_X 8
#define LOCAL_Y 8
#define LOCAL_Z 1
#define WIDTH 8   // of the pixels that threads run over
#define HEIGHT 8
#define ROWS 1    // pixels of one thread, one below the other
#define SLICES 1  // output slices of one thread, and how many there are in all
#define ALL_SLICES 1

layout(local_size_x = LOCAL_X, local_size_y = LOCAL_Y, local_size_z = LOCAL_Z) in;

#include "vocabulary.glsl"
#include "elementwise.glsl"

//@ bindings
layout(binding = 0) uniform samplerBuffer in0_texels;
#define in0(i) texelFetch(in0_texels, i)
layout(std430, binding = 0) writeonly buffer Out0 { vec4 out0[]; };
//@ end

void main() {
    int thread = int(gl_LocalInvocationIndex);
    //@ place
    // Threads past the edge repeat the last ones' work instead of leaving: equal values to equal places, and no branch.
    int x0 = min(int(gl_GlobalInvocationID.x), WIDTH - 1);
    int y0 = min(int(gl_GlobalInvocationID.y) * ROWS, HEIGHT - ROWS);
    int z0 = min(int(gl_GlobalInvocationID.z) * SLICES, ALL_SLICES - SLICES);
    //@ end
    //@ body
    int i = z0 * WIDTH * HEIGHT + y0 * WIDTH + x0;
    WRITE(out0, i, READ(in0, i));
    //@ end
}

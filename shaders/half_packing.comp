#version 430
// Converts floats to halves as kernels do, for half_packing.py to compare with what is right.
layout(local_size_x = 64) in;

layout(std430, binding = 0) readonly buffer Values { vec4 values[]; };
layout(std430, binding = 1) writeonly buffer Halves { uvec2 halves[]; };

#include "halves_packed.glsl"

void main() {
    uint i = gl_GlobalInvocationID.x;
    halves[i] = pack_halves(values[i]);
}

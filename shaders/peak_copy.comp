#version 430
// Copies a buffer, one texel per thread, with the same accesses as the kernels: the peak memory bandwidth.
#define GROUP 64

layout(local_size_x = GROUP) in;
layout(binding = 0) uniform samplerBuffer source;
layout(std430, binding = 0) writeonly buffer Result { vec4 result[]; };

void main() {
    result[gl_GlobalInvocationID.x] = texelFetch(source, int(gl_GlobalInvocationID.x));
}

#version 430
// Copies a buffer, one texel a thread: what memory gives when nothing is computed.
#define GROUP 64

layout(local_size_x = GROUP) in;
layout(std430, binding = 0) readonly buffer Source { vec4 source[]; };
layout(std430, binding = 1) writeonly buffer Result { vec4 result[]; };

void main() {
    result[gl_GlobalInvocationID.x] = source[gl_GlobalInvocationID.x];
}

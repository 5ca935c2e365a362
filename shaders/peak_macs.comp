#version 430
// Multiplies and adds in registers at the device's peak rate: no input, one value per thread comes out.
#ifdef GL_AMD_gpu_shader_half_float
#extension GL_AMD_gpu_shader_half_float : enable
#endif
#ifdef GL_NV_gpu_shader5
#extension GL_NV_gpu_shader5 : enable
#endif
#define GROUP 64
#define ROUNDS 256
#define VECTOR vec4
#define PRECISION highp

layout(local_size_x = GROUP) in;
layout(std430, binding = 0) writeonly buffer Result { vec4 result[]; };

// Three independent chains hide each other's latency; more would not fit into the registers of a CPU.
#define STEP a = a * factor + term; b = b * factor + term; c = c * factor + term;

void main() {
    uint thread = gl_GlobalInvocationID.x;
    // Numbers unknown to the compiler, far from infinity and from slow denormal numbers.
    PRECISION VECTOR factor = VECTOR(vec4(0.5) + vec4(thread & 3u) * 0.1), term = VECTOR(vec4(0.5) + vec4(thread & 7u) * 0.01);
    PRECISION VECTOR a = term, b = VECTOR(vec4(term) + 0.1), c = VECTOR(vec4(term) + 0.2);
    for (int i = 0; i < ROUNDS; i++) {
        STEP STEP STEP STEP
    }
    result[thread] = vec4(a + b + c);
}

#version 430
// Multiplies and adds in registers at the device's peak rate: no input, one value per thread comes out.
#define GROUP 64
#define ROUNDS 256

layout(local_size_x = GROUP) in;
layout(std430, binding = 0) writeonly buffer Result { vec4 result[]; };

// Three independent chains hide each other's latency; more would not fit into the registers of a CPU.
#define STEP a = a * factor + term; b = b * factor + term; c = c * factor + term;

void main() {
    uint thread = gl_GlobalInvocationID.x;
    // Numbers unknown to the compiler, far from infinity and from slow denormal numbers.
    vec4 factor = vec4(0.5) + vec4(thread & 3u) * 0.1, term = vec4(0.5) + vec4(thread & 7u) * 0.01;
    vec4 a = term, b = term + 0.1, c = term + 0.2;
    for (int i = 0; i < ROUNDS; i++) {
        STEP STEP STEP STEP
    }
    result[thread] = a + b + c;
}

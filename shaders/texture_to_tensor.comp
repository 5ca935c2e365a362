#version 430
// A texture goes in, a tensor of its size in PHWC4 comes out: its first row is the tensor's, its red the first channel.
#define GROUP 256
#define WIDTH 8
#define HEIGHT 8
#define CHANNELS 3
// Whether its bytes are a quantized tensor's, whose steps come out: each less the zero point.
#define BYTES 0
#define ZERO_POINT 0

layout(local_size_x = GROUP) in;

#include "vocabulary.glsl"

//@ bindings
layout(std430, binding = 0) writeonly buffer Out0 { vec4 out0[]; };
//@ end
layout(binding = 1) uniform sampler2D source;

void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    int first = 4 * int(at.y * uint(GROUP) * gl_NumWorkGroups.x + at.x);
    for (int k = 0; k < 4; k++) {  // a pixel a thread takes a quarter longer on a CPU
        int pixel = min(first + k, WIDTH * HEIGHT - 1);
        vec4 v = texelFetch(source, ivec2(pixel % WIDTH, pixel / WIDTH), 0);
#if BYTES
        v = floor(v * 255.0 + 0.5) - float(ZERO_POINT);
#endif
        WRITE(out0, pixel, keep(v, CHANNELS));
    }
}

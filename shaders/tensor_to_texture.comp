#version 430
// A tensor goes in, an image of its size comes out: its first row is the tensor's, its red the first channel. Channels
// that the tensor lacks are 0, and alpha is 1, as OpenGL has them where a texture lacks some.
#define GROUP 256
#define WIDTH 8
#define HEIGHT 8
#define CHANNELS 3
// Whether it is a quantized tensor, whose bytes are written: its steps plus the zero point.
#define BYTES 0
#define ZERO_POINT 0

layout(local_size_x = GROUP) in;

#include "vocabulary.glsl"

//@ bindings
layout(binding = 1) uniform samplerBuffer in0_texels;
#define in0(i) texelFetch(in0_texels, i)
//@ end
layout(binding = 0) writeonly uniform image2D target;

void main() {
    uvec2 at = gl_GlobalInvocationID.xy;
    int pixel = min(int(at.y * uint(GROUP) * gl_NumWorkGroups.x + at.x), WIDTH * HEIGHT - 1);
    vec4 read = READ(in0, pixel);
#if BYTES
    read = (read + float(ZERO_POINT)) / 255.0;
#endif
    vec4 v = mix(vec4(0.0, 0.0, 0.0, 1.0), read, lessThan(ivec4(0, 1, 2, 3), ivec4(CHANNELS)));
    imageStore(target, ivec2(pixel % WIDTH, pixel / WIDTH), v);
}

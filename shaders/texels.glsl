// The texels of a network's output tensor: the definition is in app/frame/textures/tensor_view.py.
// Floats of a texel: 4 (read as RGBA32F), or 1 (R32F), which come out as red.
#define STRIDE 4
// Whether they are read from a storage buffer, for want of a buffer texture; OpenGL's buffer textures suffice.
#define STORED 0

#if STORED && defined(GL_ES)
#if STRIDE == 4
layout(std430, binding = 3) readonly buffer Texels { vec4 texels[]; };
vec4 texel_at(int i) {
    return texels[i];
}
#else
layout(std430, binding = 3) readonly buffer Texels { float texels[]; };
vec4 texel_at(int i) {
    return vec4(texels[i], 0.0, 0.0, 1.0);
}
#endif
#else
#ifdef TEXELS_UNIT
layout(binding = TEXELS_UNIT)
#endif
uniform samplerBuffer texels;

vec4 texel_at(int i) {
    return texelFetch(texels, i);
}
#endif

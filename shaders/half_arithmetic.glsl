// Types and conversions of arithmetic in halves: with an extension of OpenGL, or as OpenGL ES has it, where "mediump"
// lets the GPU take halves. What is loaded as halves and multiplied as halves is converted by nobody.
#ifdef GL_ES
#define HALF mediump float
#define HALF4 mediump vec4
HALF half1(float v) { return v; }
HALF4 half4(vec4 v) { return v; }
vec4 half_texel(uvec2 v) { return vec4(unpackHalf2x16(v.x), unpackHalf2x16(v.y)); }
#else
#define HALF float16_t
#define HALF4 f16vec4
HALF half1(float v) { return float16_t(v); }
HALF4 half4(vec4 v) { return f16vec4(v); }
vec4 half_texel(uvec2 v) { return vec4(f16vec4(unpackFloat2x16(v.x), unpackFloat2x16(v.y))); }
#endif

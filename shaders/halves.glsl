// What READ and WRITE need where tensors are stored as halves, two in each uint. Arithmetic stays float32. Values that
// are too large for a half become the largest one instead of infinity.

#undef WRITE
#define WRITE(tensor, i, v) tensor(i, v)

uvec2 to_halves(vec4 v) {
    v = mix(clamp(v, -65504.0, 65504.0), v, isnan(v));
    return uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw));
}

vec4 from_halves(uvec2 v) {
    return vec4(unpackHalf2x16(v.x), unpackHalf2x16(v.y));
}

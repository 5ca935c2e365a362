// What READ and WRITE need where tensors are stored as halves, two in each uint. Arithmetic stays float32.

#undef WRITE
#define WRITE(tensor, i, v) tensor(i, v)

// To the nearest half, on every driver: packHalf2x16 may round either way, and some compilers take long over it. What is
// too large becomes the largest half instead of infinity; what is no number stays so.
uvec2 to_halves(vec4 v) {
    const float LEAST_NORMAL = 6.103515625e-05;  // smaller halves lack the leading bit that goes without saying
    vec4 size = min(abs(v), 65504.0);
    bvec4 small = lessThan(size, vec4(LEAST_NORMAL));
    uvec4 bits = floatBitsToUint(size + vec4(small) * LEAST_NORMAL);  // which gives them that bit ...
    bits = (bits - (112u << 23) + (1u << 12)) >> 13;  // exponents count from another zero, mantissas are 13 bits shorter
    bits = (bits - 0x400u * uvec4(small)) & 0x7fffu;  // ... and takes it away
    bits |= 0x7e00u * uvec4(isnan(v)) | ((floatBitsToUint(v) >> 16) & 0x8000u);
    return bits.xz | (bits.yw << 16);
}

vec4 from_halves(uvec2 v) {
    return vec4(unpackHalf2x16(v.x), unpackHalf2x16(v.y));
}

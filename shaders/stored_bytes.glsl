// What READ and WRITE need where tensors are stored as bytes, four in each uint. Arithmetic stays float32.

#undef WRITE
#define WRITE(tensor, i, v) tensor(i, v)

// Whole numbers, less the least of their tensor. No driver's conversion to normalized bytes, which may round in any way;
// and whatever is given, no lane reaches another one's bits.
uint to_bytes(vec4 v, float low) {
    uvec4 bits = uvec4(clamp(ivec4(v + (0.5 - low)), 0, 255));
    return bits.x | (bits.y << 8) | (bits.z << 16) | (bits.w << 24);
}

// The numbers themselves are greater by the least one.
vec4 from_bytes(uint v) {
    return vec4(uvec4(v, v >> 8, v >> 16, v >> 24) & 255u);
}

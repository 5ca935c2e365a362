// Four bytes in a word of a buffer, the first one lowest, become the steps of a quantized tensor, q - zero point, and
// such steps become bytes. Integers without a scale have the zero point 0.

vec4 steps_of(uint word, bool is_signed, int zero_point) {
    ivec4 q = is_signed ? ivec4(int(word)) << ivec4(24, 16, 8, 0) >> 24 : ivec4(uvec4(word) >> uvec4(0, 8, 16, 24)) & 255;
    return vec4(q - zero_point);
}

uint word_of(vec4 steps, bool is_signed, int zero_point) {
    int least = is_signed ? -128 : 0;
    ivec4 q = clamp(ivec4(floor(clamp(steps, -1e6, 1e6) + 0.5)) + zero_point, least, least + 255) & 255;
    return uint(q.x | q.y << 8 | q.z << 16 | q.w << 24);
}

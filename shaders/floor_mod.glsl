// Quotients rounded down and what they leave, with the sign of the divisor: exact as fmod() of C, for floats of any size.

// The remainder of |x| / |y|, in integers: eight more bits of x's mantissa at a time, as in a division on paper.
vec4 remainder(vec4 x, vec4 y) {
    uvec4 bits_x = floatBitsToUint(abs(x)), bits_y = floatBitsToUint(abs(y));
    ivec4 exponent_x = ivec4(bits_x >> 23), exponent_y = ivec4(bits_y >> 23);
    uvec4 divisor = (bits_y & 0x7fffffu) | 0x800000u;
    uvec4 rest = ((bits_x & 0x7fffffu) | 0x800000u) % divisor;
    for (ivec4 left = exponent_x - exponent_y; any(greaterThan(left, ivec4(0))); left -= 8)
        rest = (rest << clamp(left, 0, 8)) % divisor;
    vec4 result = ldexp(vec4(rest), max(exponent_y, 1) - 150);
    result = mix(result, abs(x), lessThan(abs(x), abs(y)));
    bvec4 undefined = bvec4(ivec4(isinf(x)) + ivec4(isnan(x)) + ivec4(isnan(y)) + ivec4(equal(y, vec4(0.0))));
    return mix(result, vec4(uintBitsToFloat(0x7fc00000u)), undefined);
}

vec4 floor_mod(vec4 x, vec4 y) {
    vec4 rest = remainder(x, y) * sign(x);
    return rest + mix(vec4(0.0), y, lessThan(sign(rest) * sign(y), vec4(0.0)));
}

vec4 floor_div(vec4 x, vec4 y) {
    bvec4 infinite = bvec4(ivec4(isinf(x / y)) + ivec4(isinf(y)));
    return mix(roundEven((x - floor_mod(x, y)) / y), floor(x / y), infinite);
}

// The same of whole numbers below 2^24, in integers. A divisor of zero counts as one.
vec4 whole_floor_div(vec4 x, vec4 y) {
    uvec4 divided = uvec4(abs(x)), divisor = max(uvec4(abs(y)), 1u);
    bvec4 negative = lessThan(sign(x) * sign(y + 0.5), vec4(0.0));
    return mix(vec4(divided / divisor), -vec4((divided + divisor - 1u) / divisor), negative);
}

vec4 whole_floor_mod(vec4 x, vec4 y) {
    vec4 rest = vec4(uvec4(abs(x)) % max(uvec4(abs(y)), 1u)) * sign(x);
    return rest + mix(vec4(0.0), y, lessThan(rest * sign(y), vec4(0.0)));
}

// Whole numbers beyond 32 bits, each a pair of ints, and the roundings of TensorFlow Lite's kernels for 16-bit integers.

struct Wide {
    ivec4 high;
    uvec4 low;
};

Wide wide(ivec4 x) {
    return Wide(x >> 31, uvec4(x));
}

Wide wide_product(Wide x, uvec4 y) {
    uvec4 carry, low;
    umulExtended(x.low, y, carry, low);
    return Wide(x.high * ivec4(y) + ivec4(carry), low);
}

Wide wide_sum(Wide x, Wide y) {
    uvec4 carry, low = uaddCarry(x.low, y.low, carry);
    return Wide(x.high + y.high + ivec4(carry), low);
}

// Divided by a power of two from 2^0 to 2^31, rounded down.
Wide wide_shifted(Wide x, ivec4 bits) {
    return Wide(x.high >> bits, (x.low >> bits) | ((uvec4(x.high) << 1) << (31 - bits)));
}

// What 32 bits keep of a number that is divided by two, rounded up at one half.
ivec4 halved(Wide x) {
    Wide more = wide_sum(x, wide(ivec4(1)));
    return ivec4((more.low >> 1) | (uvec4(more.high) << 31));
}

// Divided by a power of two from 2^0 to 2^31, rounded away from zero.
ivec4 divided(ivec4 x, ivec4 bits) {
    ivec4 mask = (ivec4(1) << bits) - 1;
    return (x >> bits) + ivec4(greaterThan(x & mask, (mask >> 1) - (x >> 31)));
}

// Times a number of 31 bits in units of 2^-31, rounded up.
ivec4 high_product(ivec4 x, uvec4 y) {
    return halved(wide_shifted(wide_product(wide(x), y), ivec4(30)));
}

// Times a multiplier in two parts, in units of 2^-31, rounded up, then shifted to the right and rounded away from zero.
ivec4 fixed_product(ivec4 x, ivec4 high, ivec4 low, ivec4 bits) {
    return divided(high_product(x, uvec4((high << 16) + low)), bits);
}

// The same from 2^0 to 2^62.
Wide wide_shifted_far(Wide x, ivec4 bits) {
    ivec4 first = min(bits, 31);
    return wide_shifted(wide_shifted(x, first), bits - first);
}

// A sum of products of digits in a base, and a bias in two parts, in units of 2^24 and 1.
Wide sum_of_digits(vec4 a, vec4 b, vec4 c, vec4 upper, vec4 lower, uvec4 base) {
    Wide sum = wide_sum(wide_product(wide(ivec4(a)), base), wide(ivec4(b)));
    sum = wide_sum(wide_product(sum, base), wide(ivec4(c)));
    return wide_sum(sum, wide_sum(wide_product(wide(ivec4(upper)), uvec4(1u << 24)), wide(ivec4(lower))));
}

// Times a multiplier of 15 bits, shifted to the right by one bit more than is given, and rounded up.
vec4 requantize_wide(vec4 a, vec4 b, vec4 c, vec4 upper, vec4 lower, vec4 multiplier, vec4 shift, vec4 last) {
    Wide product = wide_product(sum_of_digits(a, b, c, upper, lower, uvec4(last.z)), uvec4(multiplier));
    return clamp(vec4(halved(wide_shifted_far(product, ivec4(shift)))), last.x, last.y);
}

// Times a multiplier of 31 bits, whose product has up to 78: of 47 bits of the size, 16 are multiplied by themselves. Shifted
// to the right by 17 bits more than is given, and rounded away from zero.
vec4 requantize_wide_once(vec4 a, vec4 b, vec4 c, vec4 upper, vec4 lower, vec4 high, vec4 low, vec4 shift, vec4 last) {
    Wide sum = sum_of_digits(a, b, c, upper, lower, uvec4(last.z));
    ivec4 sign = sum.high >> 31;  // -1 below zero
    Wide size = wide_sum(Wide(sum.high ^ sign, sum.low ^ uvec4(sign)), wide(-sign));
    uvec4 multiplier = uvec4((ivec4(high) << 16) + ivec4(low));
    Wide below = wide_product(Wide(ivec4(0), size.low & 65535u), multiplier);
    Wide above = wide_product(Wide(ivec4(0), (uvec4(size.high) << 16) | (size.low >> 16)), multiplier);
    Wide found = wide_shifted_far(wide_sum(above, wide_shifted(below, ivec4(16))), ivec4(shift));
    vec4 rounded = mix(vec4(uvec4(halved(found))), vec4(2147483648.0), greaterThan(found.high, ivec4(0)));
    return clamp(vec4(2 * sign + 1) * rounded, last.x, last.y);
}

// The same of a * b + c, whose last 32 bits count, by a multiplier of 31 bits, and rounded twice; to the left, or right.
vec4 requantize_product(vec4 a, vec4 b, vec4 c, vec4 high, vec4 low, vec4 shift, vec4 last) {
    ivec4 bits = ivec4(shift), x = (ivec4(a) * ivec4(b) + ivec4(c)) << max(-bits, 0);
    return clamp(vec4(fixed_product(x, ivec4(high), ivec4(low), max(bits, 0))), last.x, last.y);
}

// Steps of two scales to 2^-15 of twice the greater one, that of `a`, and their sum to steps of a third one.
vec4 add_short_steps(vec4 a, vec4 b, vec4 other, vec4 sum, vec4 last) {
    ivec4 second = fixed_product(ivec4(b) << 15, ivec4(other.x), ivec4(other.y), ivec4(other.z));
    ivec4 both = ivec4(a) * int(last.x) + second * int(last.y);
    return clamp(vec4(fixed_product(both, ivec4(sum.x), ivec4(sum.y), ivec4(sum.z))), last.z, last.w);
}

// A power in two parts, in 2^-31, divided by a sum of them in two parts, in 2^-19, to so many bits. The reciprocal of the
// sum, which is shifted to at least one half and below one, is found in 2^-29 by three steps of Newton.
vec4 softmax_steps(vec4 high, vec4 low, vec4 upper, vec4 lower, vec4 last) {
    ivec4 sum = max((ivec4(upper) << 10) + ivec4(lower), 1 << 19);
    ivec4 zeros = 31 - findMSB(sum);
    uvec4 part = uvec4(sum << (zeros - 1));
    ivec4 x = 1515870810 + high_product(ivec4(-1010580540), part);
    for (int i = 0; i < 3; i++) {
        x += high_product((1 << 29) - high_product(x, part), uvec4(x)) << 2;
    }
    uvec4 reciprocal = min(uvec4(x) << 1, uvec4(2147483647u));
    ivec4 found = high_product((ivec4(high) << 16) + ivec4(low), reciprocal);
    return clamp(vec4(divided(found, 43 - zeros - int(last.z))), last.x, last.y);
}

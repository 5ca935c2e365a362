// Integers of 32 and 64 bits as digits of 16 bits, whole numbers from 0 to 65535, the least one first; a negative one is its
// two's complement. A function gives one digit of its result, by its number. A divisor of zero counts as one.

uvec4 int32_of(vec4 low, vec4 high) { return uvec4(low) | uvec4(high) << 16u; }

vec4 digit_of(uvec4 bits, vec4 digit) { return vec4((bits >> (16u * uint(digit.x))) & 0xffffu); }

// All bits where the highest one is set.
uvec4 sign_bits(uvec4 bits) { return 0u - (bits >> 31u); }

uvec4 magnitude(uvec4 bits) { return (bits ^ sign_bits(bits)) - sign_bits(bits); }

uvec4 truth_bits(bvec4 truths) { return 0u - uvec4(truths); }

vec4 int32_product(vec4 a0, vec4 a1, vec4 b0, vec4 b1, vec4 digit) {
    return digit_of(int32_of(a0, a1) * int32_of(b0, b1), digit);
}

vec4 int32_quotient(vec4 a0, vec4 a1, vec4 b0, vec4 b1, vec4 digit) {
    uvec4 a = int32_of(a0, a1), b = int32_of(b0, b1), sign = sign_bits(a ^ b);
    return digit_of((magnitude(a) / max(magnitude(b), 1u) ^ sign) - sign, digit);
}

// Rounded down: where the quotient is negative and something is left, one less, which is the complement.
vec4 int32_floor_quotient(vec4 a0, vec4 a1, vec4 b0, vec4 b1, vec4 digit) {
    uvec4 a = int32_of(a0, a1), b = int32_of(b0, b1), sign = sign_bits(a ^ b);
    uvec4 divided = magnitude(a), divisor = max(magnitude(b), 1u);
    uvec4 is_exact = truth_bits(equal(divided % divisor, uvec4(0u)));
    return digit_of((divided / divisor ^ sign) - (sign & is_exact), digit);
}

vec4 int32_floor_remainder(vec4 a0, vec4 a1, vec4 b0, vec4 b1, vec4 digit) {
    uvec4 a = int32_of(a0, a1), b = int32_of(b0, b1), divisor = max(magnitude(b), 1u);
    uvec4 rest = magnitude(a) % divisor, is_left = truth_bits(notEqual(rest, uvec4(0u)));
    rest = (rest ^ sign_bits(a)) - sign_bits(a);
    return digit_of(rest + (b & is_left & sign_bits(a ^ b)), digit);
}

vec4 int64_product(
    vec4 a0, vec4 a1, vec4 a2, vec4 a3, vec4 b0, vec4 b1, vec4 b2, vec4 b3, vec4 digit
) {
    uvec4 a[4] = uvec4[4](uvec4(a0), uvec4(a1), uvec4(a2), uvec4(a3));
    uvec4 b[4] = uvec4[4](uvec4(b0), uvec4(b1), uvec4(b2), uvec4(b3));
    uvec4 sum = uvec4(0u), next = uvec4(0u);
    for (int k = 0; k <= int(digit.x); ++k) {
        sum = next + (sum >> 16u);
        next = uvec4(0u);
        for (int i = 0; i <= k; ++i) {
            uvec4 product = a[i] * b[k - i];
            sum += product & 0xffffu;
            next += product >> 16u;
        }
    }
    return vec4(sum & 0xffffu);
}

// Bit by bit, as on paper; of each pair of words the first has the low bits.
vec4 int64_floor_remainder(
    vec4 a0, vec4 a1, vec4 a2, vec4 a3, vec4 b0, vec4 b1, vec4 b2, vec4 b3, vec4 digit
) {
    uvec4 low = int32_of(a0, a1), high = int32_of(a2, a3), by_low = int32_of(b0, b1), by_high = int32_of(b2, b3);
    uvec4 sign = sign_bits(high), by_sign = sign_bits(by_high), divisor_low = by_low, divisor_high = by_high;
    high = (high ^ sign) + (sign & truth_bits(equal(low, uvec4(0u))) & 1u);
    low = (low ^ sign) - sign;
    by_high = (by_high ^ by_sign) + (by_sign & truth_bits(equal(by_low, uvec4(0u))) & 1u);
    by_low = (by_low ^ by_sign) - by_sign;
    by_low |= truth_bits(equal(by_low | by_high, uvec4(0u))) & 1u;
    uvec4 rest_low = uvec4(0u), rest_high = uvec4(0u);
    for (int k = 0; k < 64 * int(gl_NumWorkGroups.x > 0u); ++k) {  // which no compiler unrolls
        rest_high = rest_high << 1u | rest_low >> 31u;
        rest_low = rest_low << 1u | high >> 31u;
        high = high << 1u | low >> 31u;
        low <<= 1u;
        uvec4 fits = truth_bits(greaterThan(rest_high, by_high));
        fits |= truth_bits(equal(rest_high, by_high)) & truth_bits(greaterThanEqual(rest_low, by_low));
        uvec4 borrow = truth_bits(lessThan(rest_low, by_low)) & fits & 1u;
        rest_low -= by_low & fits;
        rest_high -= (by_high & fits) + borrow;
    }
    uvec4 is_left = truth_bits(notEqual(rest_low | rest_high, uvec4(0u)));
    rest_high = (rest_high ^ sign) + (sign & truth_bits(equal(rest_low, uvec4(0u))) & 1u);
    rest_low = (rest_low ^ sign) - sign;
    uvec4 more = is_left & (sign ^ by_sign);
    uvec4 total = rest_low + (divisor_low & more);
    rest_high += (divisor_high & more) + (truth_bits(lessThan(total, rest_low)) & 1u);
    return digit.x < 2.0 ? digit_of(total, digit) : digit_of(rest_high, digit - 2.0);
}

// The nearest float of numbers without a sign, of two the even one: what 24 bits do not hold is rounded as integers.
vec4 nearest(uvec4 bits) {
    ivec4 more = max(findMSB(bits) - 23, 0);
    uvec4 kept = bits >> more, rest = bits & ((uvec4(1u) << more) - 1u), middle = (uvec4(1u) << more) >> 1u;
    uvec4 is_up = truth_bits(greaterThan(rest, middle)) | (truth_bits(equal(rest, middle)) & (0u - (kept & 1u)));
    return vec4(kept + (is_up & truth_bits(greaterThan(more, ivec4(0))) & 1u)) * vec4(uvec4(1u) << more);
}

vec4 int32_value(vec4 low, vec4 high) {
    uvec4 bits = int32_of(low, high);
    return nearest(magnitude(bits)) * (1.0 - 2.0 * vec4(bits >> 31u));
}

// The highest 32 bits, the last of them set if any of those that follow is.
vec4 int64_value(vec4 d0, vec4 d1, vec4 d2, vec4 d3) {
    uvec4 low = int32_of(d0, d1), high = int32_of(d2, d3), sign = sign_bits(high);
    high = (high ^ sign) + (sign & truth_bits(equal(low, uvec4(0u))) & 1u);
    low = (low ^ sign) - sign;
    ivec4 more = findMSB(high) + 1, first = more / 2;
    uvec4 bits = (high << (16 - first) << (16 - (more - first))) | (low >> first >> (more - first));
    uvec4 lost = low << (16 - first) << (16 - (more - first));
    bits |= truth_bits(notEqual(lost, uvec4(0u))) & truth_bits(greaterThan(more, ivec4(0))) & 1u;
    return nearest(bits) * vec4(uvec4(1u) << first) * vec4(uvec4(1u) << (more - first)) * (1.0 - 2.0 * vec4(sign & 1u));
}

// Sums of halves of digits, and what the digit before carries over.
uvec4 sum_of_halves(vec4 lower, vec4 upper, vec4 carried) { return uvec4(lower) + (uvec4(upper) << 8u) + uvec4(carried); }

vec4 digit_of_halves(vec4 lower, vec4 upper, vec4 carried) {
    return vec4(sum_of_halves(lower, upper, carried) & 0xffffu);
}

vec4 carry_of_halves(vec4 lower, vec4 upper, vec4 carried) {
    return vec4(sum_of_halves(lower, upper, carried) >> 16u);
}

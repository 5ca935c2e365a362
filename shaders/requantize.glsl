// Whole numbers in one scale, as steps of another: the roundings of TensorFlow Lite's reference kernels, to the bit.

// The nearest whole number, of two the one farther from zero. Exact: v + 0.5 would round itself.
vec4 round_away(vec4 v) {
    vec4 whole = trunc(v);
    return whole + trunc(2.0 * (v - whole));
}

// The same, of two the greater one.
vec4 round_up(vec4 v) {
    vec4 whole = floor(v);
    return whole + floor(2.0 * (v - whole));
}

vec4 round_to_steps(vec4 v, vec4 multiplier, vec4 limits) {
    return clamp(round_away(v * multiplier), limits.x, limits.y);
}

// The bits from 31 on of a product of two integers: rounded down, or, by half a unit more, up.
ivec4 high_product(ivec4 x, ivec4 y, uvec4 more) {
    ivec4 above, below;
    imulExtended(x, y, above, below);
    uvec4 carry, sum = uaddCarry(uvec4(below), more, carry);
    return ((above + ivec4(carry)) << 1) | ivec4(sum >> 31);
}

const uvec4 HALF_UNIT = uvec4(0x40000000u);

ivec4 multiplier_of(vec4 high, vec4 low) {
    return (ivec4(high) << 16) + ivec4(low);
}

// Rounded up to a whole number behind the product, and away from zero behind the power.
vec4 requantize(vec4 v, vec4 high, vec4 low, vec4 power, vec4 limits) {
    ivec4 product = high_product(ivec4(v * max(power, 1.0)), multiplier_of(high, low), HALF_UNIT);
    return clamp(round_away(vec4(product) * min(power, 1.0)), limits.x, limits.y);
}

// The same where float32 has the product to a quarter (is_narrow in gpu_delegate/ops/requantize.py), in a third of the
// instructions. Twice the product is 2^32 times the rounded one and a rest, from -2^31 on, which is all that 32 bits keep
// of it: so the rounded one is the whole number next to the difference. Behind the power, a factor of the float next to
// 1.0 leads halves, and nothing else, away from zero.
vec4 requantize_narrow(vec4 v, vec4 high, vec4 low, vec4 power, vec4 limits) {
    vec4 x = v * max(power, 1.0), multiplier = high * 3.0517578125e-5 + low * 4.656612873077393e-10;
    ivec4 rest = ivec4(x) * ((ivec4(high) << 17) + (ivec4(low) << 1));
    vec4 product = roundEven(x * multiplier - vec4(rest) * 2.3283064365386963e-10);
    return clamp(roundEven(product * (min(power, 1.0) * 1.00000011920928955)), limits.x, limits.y);
}

// Rounded away from zero once, behind the power.
vec4 requantize_once(vec4 v, vec4 high, vec4 low, vec4 power, vec4 limits) {
    uvec4 more = uvec4(greaterThanEqual(power, vec4(1.0))) * HALF_UNIT;
    ivec4 product = high_product(ivec4(abs(v) * max(power, 1.0)), multiplier_of(high, low), more);
    return clamp(sign(v) * floor(vec4(product) * min(power, 1.0) + 0.5), limits.x, limits.y);
}

// Quotients by a power of two, given half of it, rounded away from zero.
ivec4 shifted_right(ivec4 x, ivec4 negative, int half_of, int bits) {
    return (x + half_of + negative) >> bits;
}

// Steps of two scales to 2^-20 of twice the greater one, that of `a`: `other` is multiplied by an integer in two parts, in
// units of 1 and of 2^-11, then shifted by bits, and so is the sum, whose multiplier has a higher and a lower part. The
// factors of `last` bring both to the double of 2^-20, with the sign of each, since the product's bits from 32 on are taken.
vec4 add_steps(vec4 a, vec4 b, vec4 other, vec4 sum, vec4 last) {
    ivec4 y = ivec4(b), above, below;
    ivec4 whole = y * int(other.x) + ((y * int(other.y) + 1024) >> 11);
    ivec4 second = shifted_right(whole, y >> 31, int(other.z), int(other.w));
    imulExtended(ivec4(a) * int(last.x) + second * int(last.y), ivec4((int(sum.x) << 16) + int(sum.y)), above, below);
    above += ivec4(uvec4(below) >> 31);
    return clamp(vec4(shifted_right(above, above >> 31, int(sum.z), int(sum.w))), last.z, last.w);
}

// x * clamp(x + 3, 0, 6) / 6 in 16 bits. `gates` has the factor of x, and the gate's: before, of, and behind a rounding;
// `last` the last one, and the limits.
vec4 hard_swish_steps(vec4 x, vec4 gates, vec4 last) {
    vec4 value = round_up(x * gates.x);
    vec4 gate = round_up(clamp(x * gates.y, -32768.0, 32767.0) * gates.z);
    gate = clamp(round_away(gate * gates.w), -32768.0, 32767.0);
    gate = floor((gate + 32768.0) * 0.5);
    vec4 upper = floor(gate * 0.0078125);
    vec4 lower = (gate - upper * 128.0) * abs(value) * 0.000030517578125;
    upper = upper * abs(value) * 0.00390625;
    vec4 product = floor(upper) + floor(upper - floor(upper) + lower);
    return clamp(round_away(sign(value) * product * last.x), last.y, last.z);
}

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

vec4 round_to_steps(vec4 v, vec4 multiplier, float least, float most) {
    return clamp(round_away(v * multiplier), least, most);
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
vec4 requantize(vec4 v, vec4 high, vec4 low, vec4 power, float least, float most) {
    ivec4 product = high_product(ivec4(v * max(power, 1.0)), multiplier_of(high, low), HALF_UNIT);
    return clamp(round_away(vec4(product) * min(power, 1.0)), least, most);
}

// Rounded up once, behind the power.
vec4 requantize_once(vec4 v, vec4 high, vec4 low, vec4 power, float least, float most) {
    uvec4 more = uvec4(greaterThanEqual(power, vec4(1.0))) * HALF_UNIT;
    ivec4 product = high_product(ivec4(v * max(power, 1.0)), multiplier_of(high, low), more);
    return clamp(floor(vec4(product) * min(power, 1.0) + 0.5), least, most);
}

// Quotient by a power of two, rounded away from zero.
ivec4 shifted_right(ivec4 x, int bits) {
    int mask = (1 << bits) - 1;
    ivec4 rest = x & mask, half_of = ivec4(mask >> 1) + ivec4(lessThan(x, ivec4(0)));
    return (x >> bits) + ivec4(greaterThan(rest, half_of));
}

// Steps of two scales to 2^-20 of a common one, added or subtracted; a multiplier is followed by its shift to the right.
vec4 add_steps(vec4 a, vec4 b, ivec2 of_a, ivec2 of_b, ivec2 of_sum, int sign, float least, float most) {
    ivec4 first = shifted_right(high_product(ivec4(a) << 20, ivec4(of_a.x), HALF_UNIT), of_a.y);
    ivec4 second = shifted_right(high_product(ivec4(b) << 20, ivec4(of_b.x), HALF_UNIT), of_b.y);
    ivec4 total = high_product(first + sign * second, ivec4(of_sum.x), HALF_UNIT);
    return clamp(vec4(shifted_right(total, of_sum.y)), least, most);
}

// x * clamp(x + 3, 0, 6) / 6 in 16 bits. The gate is computed in `gates`: factors before, of, and behind a rounding.
vec4 hard_swish_steps(vec4 x, float multiplier, vec3 gates, float power, float low, float high) {
    vec4 value = round_up(x * multiplier);
    vec4 gate = round_up(clamp(x * gates.x, -32768.0, 32767.0) * gates.y);
    gate = clamp(round_away(gate * gates.z), -32768.0, 32767.0);
    gate = floor((gate + 32768.0) * 0.5);
    vec4 upper = floor(gate * 0.0078125);
    vec4 lower = (gate - upper * 128.0) * abs(value) * 0.000030517578125;
    upper = upper * abs(value) * 0.00390625;
    vec4 product = floor(upper) + floor(upper - floor(upper) + lower);
    return clamp(round_away(sign(value) * product * power), low, high);
}

// Whole numbers as steps of another scale: the roundings of TensorFlow Lite's reference kernels.

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

// Two roundings of a sum of products. The multiplier has 12 bits, and a rest: its product with either half of v is exact.
vec4 requantize(vec4 v, vec4 multiplier, vec4 rest, vec4 power, float low, float high) {
    vec4 upper = trunc(v * 0.000244140625) * 4096.0;
    vec4 lower = (v - upper) * multiplier;
    vec4 whole = floor(lower);
    vec4 product = upper * multiplier + whole + round_up(lower - whole + v * rest);
    return clamp(round_away(product * power), low, high);
}

// x and y in scales of their own. Sums of their products with the factors are exact; with the rests they are small.
vec4 add_steps(vec4 x, vec4 y, vec2 factors, vec2 rests, float half_up, float low, float high) {
    vec4 sum = x * factors.x + y * factors.y;
    vec4 rest = x * rests.x + y * rests.y;
    vec4 side = sign(sum);
    vec4 whole = floor(abs(sum));
    return clamp(side * (whole + floor(abs(sum) - whole + side * rest + half_up)), low, high);
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

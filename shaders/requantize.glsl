// Sums of products of whole numbers, as steps of the output: the two roundings of TensorFlow Lite's reference kernels.

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

vec4 requantize(vec4 v, vec4 multiplier, vec4 power, float low, float high) {
    return clamp(round_away(round_up(v * multiplier) * power), low, high);
}

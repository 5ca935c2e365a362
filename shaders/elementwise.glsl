// Elementwise functions on one vec4: the vocabulary of gpu_delegate/ops/elementwise.py.

vec4 hard_swish(vec4 v) {
    return v * clamp(v * (1.0 / 6.0) + 0.5, 0.0, 1.0);
}

vec4 logistic(vec4 v) {
    return 1.0 / (1.0 + exp(-v));
}

// exp of the magnitude never overflows, unlike (exp(v) - exp(-v)) / (exp(v) + exp(-v)).
vec4 tanh_exact(vec4 v) {
    vec4 e = exp(-2.0 * abs(v));
    return sign(v) * (1.0 - e) / (1.0 + e);
}

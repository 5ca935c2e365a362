// The error function.

// Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: within 1.5e-7.
vec4 erf(vec4 v) {
    vec4 t = 1.0 / (1.0 + 0.3275911 * abs(v));
    vec4 sum = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    return sign(v) * (1.0 - sum * exp(-v * v));
}

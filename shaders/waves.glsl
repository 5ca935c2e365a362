// Sine and cosine, exact up to 4,096 circles: GPUs' own are within some circles alone.

#if defined(GL_ES) && __VERSION__ < 320
#define ORDERED  // which compilers may ignore
#else
#define ORDERED precise  // compilers would add the parts of a circle up again
#endif

// What is left of v by whole circles, which are taken away in parts that float32 multiplies exactly; v itself beyond.
// Cody and Waite, Software Manual for the Elementary Functions (1980), 8.
vec4 within_circle(vec4 v) {
    vec4 circles = round(v * 0.15915494309);
    ORDERED vec4 rest = v - circles * 6.28125;
    rest = rest - circles * 0.00193500518798828125;
    rest = rest - circles * 3.01991597951e-7;
    return mix(rest, v, greaterThan(abs(v), vec4(25735.0)));
}

vec4 sine(vec4 v) {
    return sin(within_circle(v));
}

vec4 cosine(vec4 v) {
    return cos(within_circle(v));
}

// What a look does to the mask and to positions in the frame.
// Whether a curve is applied to the mask.
#define SHAPED 0

uniform vec2 curve;  // an offset and an exponent
uniform ivec2 mirror;  // column x of the picture shows column (x ^ mirror.x) + mirror.y of the frame: ~x is -x - 1

float shaped(float mask) {
#if SHAPED
    return pow(clamp(mask + curve.x, 0.0, 1.0), curve.y);
#else
    return mask;
#endif
}

ivec2 mirrored(ivec2 at) {
    return ivec2((at.x ^ mirror.x) + mirror.y, at.y);
}

// What a look does to the mask and to positions in the frame.
// Whether a curve is applied to the mask.
#define SHAPED 0
// Whether the mask comes from a texture of cells with the look's edge (app/frame/mask_edge.py).
#define EDGED 0

uniform vec2 curve;  // an offset and an exponent
uniform ivec2 mirror;  // column x of the picture shows column (x ^ mirror.x) + mirror.y of the frame: ~x is -x - 1

float shaped(float mask) {
#if SHAPED
    return pow(clamp(mask + curve.x, 0.0, 1.0), curve.y);
#else
    return mask;
#endif
}

#if EDGED
uniform sampler2D edged;
uniform int edge_factor;  // pixels of the frame along a side of a cell
#endif

// The look's mask at a pixel of the frame, whose colour goes in as well.
float person_at(ivec2 at, vec3 pixel, bool softened) {
#if EDGED
    vec2 cells = vec2((ivec2(FRAME_W, FRAME_H) - 1) / edge_factor + 1);
    vec2 place = min((vec2(at) + 0.5) / float(edge_factor), cells - 0.5);
    return textureLod(edged, place / vec2(textureSize(edged, 0)), 0.0).r;
#else
    return shaped(mask_over(at, pixel, softened));
#endif
}

ivec2 mirrored(ivec2 at) {
    return ivec2((at.x ^ mirror.x) + mirror.y, at.y);
}

// The look's mask at a pixel of the frame, whose color goes in as well.
// Whether the mask comes from a texture of cells with the look's edge (app/frame/drawing/mask_edge.py).
#define EDGED 0
#include "mask_over.glsl"
#include "look.glsl"

#if EDGED
uniform sampler2D edged;
uniform int edge_factor;  // pixels of the frame along a side of a cell
#endif

float person_at(ivec2 at, vec3 pixel, bool softened) {
#if EDGED
    vec2 cells = vec2((ivec2(FRAME_W, FRAME_H) - 1) / edge_factor + 1);
    vec2 place = min((vec2(at) + 0.5) / float(edge_factor), cells - 0.5);
    return textureLod(edged, place / vec2(textureSize(edged, 0)), 0.0).r;
#else
    return shaped(mask_over(at, pixel, softened));
#endif
}

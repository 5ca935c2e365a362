// Where a pixel lies in another image, the network's output, that covers the frame, or that samples it otherwise, by the
// parameters X_STEP, X_START, X_DEN and those of Y of who includes this.
// Whether pixels are those of a part of the frame, enlarged (app/frame/drawing/cropped_frame.py).
#define CROPPED 0
#include "sampling.glsl"

#if CROPPED
uniform vec4 placed;  // at the pixel (x, y) the other image is sampled at (x, y) * placed.xy + placed.zw
#endif

vec2 covering(ivec2 at) {
#if CROPPED
    return vec2(at) * placed.xy + placed.zw;
#else
    return (vec2(at) * vec2(X_STEP, Y_STEP) + vec2(X_START, Y_START)) / vec2(X_DEN, Y_DEN);
#endif
}

// The same as whole pixels and fractions.
void locate_covering(ivec2 at, out int x, out float x_part, out int y, out float y_part) {
#if CROPPED
    vec2 place = covering(at);
    x = int(floor(place.x));
    y = int(floor(place.y));
    x_part = place.x - float(x);
    y_part = place.y - float(y);
#else
    locate(at.x, X_STEP, X_START, X_DEN, x, x_part);
    locate(at.y, Y_STEP, Y_START, Y_DEN, y, y_part);
#endif
}

// Whether the center that a pixel samples lies within the other image, of that size.
bool is_covered(ivec2 at, ivec2 size) {
#if CROPPED
    vec2 place = covering(at) + 0.5;
    return min(place.x, place.y) >= 0.0 && place.x <= float(size.x) && place.y <= float(size.y);
#else
    return is_inside(at.x, X_STEP, X_START, X_DEN, size.x) && is_inside(at.y, Y_STEP, Y_START, Y_DEN, size.y);
#endif
}

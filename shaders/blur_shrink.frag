#version 330
// The frame and the mask go in, the background at a fraction of the size comes out: the mean of sampled pixels of
// each cell, weighted by (1 - mask) cubed, premultiplied; the mean weight is in alpha. Row 0 is the top row.
// The background: 0 the frame itself, 1 an image, 2 a color.
#define BEHIND 0
// The most pixels that are read along a side of a cell.
#define MOST_TAPS 4
#include "frame.glsl"
#include "person.glsl"

uniform sampler2D background;  // of the frame's size
uniform vec4 color;
uniform int factor;  // pixels of the frame along a side of a cell
out vec4 weighted;

void main() {
    ivec2 corner = ivec2(gl_FragCoord.xy) * factor;
    int taps = min(factor, MOST_TAPS);
    vec4 sum = vec4(0.0);
    for (int j = 0; j < taps; j++)
        for (int i = 0; i < taps; i++) {
            ivec2 within = (2 * ivec2(i, j) + 1) * factor / (2 * taps);
            ivec2 at = min(corner + within, ivec2(FRAME_W, FRAME_H) - 1);
            vec3 pixel = frame_at(at);
            float unmasked = 1.0 - person_at(at, pixel, false);
            float weight = unmasked * unmasked * unmasked;  // hardly any of pixels where the network is uncertain
#if BEHIND == 1
            pixel = texelFetch(background, mirrored(at), 0).rgb;
#elif BEHIND == 2
            pixel = color.rgb;
#endif
            sum += weight * vec4(pixel, 1.0);
        }
    weighted = sum / float(taps * taps);
}

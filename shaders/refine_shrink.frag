#version 330
// The frame and the steady mask go in; the means of cells of the network's grid come out, colour in rgb, mask in alpha.
// Row 0 is the top row.
#define MASK_W 256
#define MASK_H 256
// Pixels of the network's grid along a side of a cell.
#define CELL 2
// Where these lie in the frame.
#define X_STEP 1280
#define X_START 384
#define X_DEN 512
#define Y_STEP 960
#define Y_START 224
#define Y_DEN 512
#include "frame.glsl"

uniform sampler2D steady;
out vec4 mean;

void main() {
    ivec2 corner = ivec2(gl_FragCoord.xy) * CELL;
    mean = vec4(0.0);
    for (int j = 0; j < CELL; j++)
        for (int i = 0; i < CELL; i++) {
            ivec2 at = min(corner + ivec2(i, j), ivec2(MASK_W, MASK_H) - 1);
            vec3 color = frame_between(at, ivec2(X_STEP, Y_STEP), ivec2(X_START, Y_START), ivec2(X_DEN, Y_DEN));
            mean += vec4(color, texelFetch(steady, at, 0).a) / float(CELL * CELL);
        }
}

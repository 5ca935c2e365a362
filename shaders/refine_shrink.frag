#version 330
// The frame and the steady mask go in; cells of the network's grid come out, the frame's color at their centers in rgb,
// their mean mask in alpha. Colors close to the previous ones are blended with them. Row 0 is the top row.
// Pixels of the network's grid along a side of a cell.
#define CELL 2
// Where the centers of cells lie in the frame.
#define X_STEP 1280
#define X_START 384
#define X_DEN 512
#define Y_STEP 960
#define Y_START 224
#define Y_DEN 512
#include "frame.glsl"

const float NOISE = 0.06;

uniform sampler2D steady;
uniform sampler2D before;  // cells of the frame before
uniform float least;  // the least weight of a color that hardly changed; 1 ignores the previous one
out vec4 cell;

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    float sum = 0.0;
    for (int j = 0; j < CELL; j++)
        for (int i = 0; i < CELL; i++) sum += texelFetch(steady, at * CELL + ivec2(i, j), 0).a;
    vec3 color = frame_between(at, ivec2(X_STEP, Y_STEP), ivec2(X_START, Y_START), ivec2(X_DEN, Y_DEN));
    vec3 past = texelFetch(before, at, 0).rgb;
    float apart = distance(color, past), weight = mix(least, 1.0, smoothstep(NOISE, 3.0 * NOISE, apart));
    if (weight < 1.0 && apart < 3.0 * NOISE) color = mix(past, color, weight);  // unwritten texels may be NaN
    cell = vec4(color, sum / float(CELL * CELL));
}

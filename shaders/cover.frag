#version 330
// A picture's planes go in, its central part that covers the target comes out. Row 0 is the top row.
// Each pixel is the mean of TAPS x TAPS samples, each of which is interpolated.
#define TAPS 1
#define X_STEP 512
#define X_START -384
#define X_DEN 1280
#define Y_STEP 512
#define Y_START -224
#define Y_DEN 960
#include "frame.glsl"

const ivec2 STEP = ivec2(X_STEP, Y_STEP), START = ivec2(X_START, Y_START), DEN = ivec2(X_DEN, Y_DEN);

out vec4 picture;

void main() {
    ivec2 corner = ivec2(gl_FragCoord.xy) * TAPS;
    vec3 sum = vec3(0.0);
    for (int j = 0; j < TAPS; j++)
        for (int i = 0; i < TAPS; i++)
            sum += frame_between(corner + ivec2(i, j), STEP, START, DEN);
    picture = vec4(sum / float(TAPS * TAPS), 1.0);
}

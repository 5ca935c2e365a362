#version 330
// The network's output tensor goes in; of each column of the profile come out the first row in which somebody is, the
// end of the last one, and how many such rows there are, in parts of all: the definition is in
// app/frame/refinement/detail_views.py.
// Columns of the mask in one of the profile.
#define WIDE 4
#include "mask.glsl"

out vec4 profile;

void main() {
    int left = int(gl_FragCoord.x) * WIDE, first = MASK_H, end = 0, rows = 0;
    for (int y = 0; y < MASK_H; y++) {
        float most = 0.0;
        for (int i = 0; i < WIDE; i++) most = max(most, mask_at(min(left + i, MASK_W - 1), y));
        int found = int(most > 0.5);
        first = min(first, found > 0 ? y : MASK_H);
        end = max(end, found > 0 ? y + 1 : 0);
        rows += found;
    }
    profile = vec4(vec3(ivec3(first, end, rows)) / float(MASK_H), 1.0);
}

#version 330
// The network's output tensor and the steady mask of the frame before go in, this frame's steady mask comes out, in
// alpha: the definition is in app/frame/refinement/temporal.py. Row 0 is the top row; beyond its edges the tensor is repeated.
// Whether the mask of the previous frame comes out, corrected by this frame's tensor (--delay-video).
#define HINDSIGHT 0
// Whether the masks of several looks come in place of a tensor (app/frame/refinement/detail.py).
#define MERGED 0
// Whether what is held joins it (app/frame/refinement/held.py).
#define HELD 0
#include "mask.glsl"

const float NO_CHANGE = 0.004, SMALL_CHANGE = 0.1, CLEAR_CHANGE = 0.3;
const int NEAR = 3;  // columns and rows, to four corners

uniform sampler2D before;
#if MERGED
uniform sampler2D merged;
#endif
#if HELD
uniform sampler2D held;
#endif
uniform float least;  // the least weight of a new value, one that agrees or is uncertain; 1 ignores the previous mask
uniform float passed;  // share of the time between the two masks, for hindsight
out vec4 steady;

float sureness(float value) {
    return abs(2.0 * value - 1.0);
}

float seen_at(ivec2 at) {
#if MERGED
    vec4 sums = texelFetch(merged, at, 0);
    return 1.0 / (1.0 + exp(-sums.r / sums.g));
#else
    return clamp(mask_at(at.x, at.y), 0.0, 1.0);
#endif
}

float value_at(ivec2 at) {
#if HELD
    return max(seen_at(at), texelFetch(held, at, 0).r);
#else
    return seen_at(at);
#endif
}

float past_at(ivec2 at, float now) {
    float past = texelFetch(before, at, 0).a;
    return past >= 0.0 && past <= 1.0 ? past : now;  // unwritten texels may hold anything, NaN included
}

float blended(float past, float now, float weight) {
    return weight < 1.0 ? mix(past, now, weight) : now;  // mix() may round, and nothing of the past is to be left
}

void main() {
    ivec2 last = ivec2(MASK_W, MASK_H) - 1, at = min(ivec2(gl_FragCoord.xy), last);
    float now = value_at(at), past = past_at(at, now);
#if HINDSIGHT
    float sure = sureness(now) * sureness(now), sure_before = sureness(past) * sureness(past);
    float told = (1.0 - sure_before) * sure / (sure + sure_before + 0.001);
    steady = vec4(vec3(0.0), blended(past, now, max(passed, told * (1.0 - least))));
#else
    float moved = sureness(now) * smoothstep(SMALL_CHANGE, SMALL_CHANGE + CLEAR_CHANGE, abs(now - past));
    int corners = abs(now - past) > NO_CHANGE ? 4 : 0;
    for (int i = 0; i < corners; i++) {
        ivec2 there = clamp(at + NEAR * (2 * ivec2(i % 2, i / 2) - 1), ivec2(0), last);
        float value = value_at(there), change = abs(value - past_at(there, value));
        moved = max(moved, sureness(value) * smoothstep(CLEAR_CHANGE, 2.0 * CLEAR_CHANGE, change));
    }
    steady = vec4(vec3(0.0), blended(past, now, mix(least, 1.0, moved)));
#endif
}

#version 330
// The network's output tensor and the steady mask of the frame before go in, this frame's steady mask comes out, in
// alpha: the definition is in app/frame/temporal.py. Row 0 is the top row; beyond its edges the tensor is repeated.
// Whether the mask of the previous frame comes out, corrected by this frame's tensor (--delay-video).
#define HINDSIGHT 0
#include "mask.glsl"

const float CLEAR_CHANGE = 0.3;

uniform sampler2D before;
uniform float least;  // the least weight of a new value, one that agrees or is uncertain; 1 ignores the previous mask
uniform float passed;  // share of the time between the two masks, for hindsight
out vec4 steady;

float sureness(float value) {
    return abs(2.0 * value - 1.0);
}

void main() {
    ivec2 drawn = ivec2(gl_FragCoord.xy), at = min(drawn, ivec2(MASK_W, MASK_H) - 1);
    float now = clamp(mask_at(at.x, at.y), 0.0, 1.0), past = texelFetch(before, drawn, 0).a;
    past = past >= 0.0 && past <= 1.0 ? past : now;  // unwritten texels may hold anything, NaN included
#if HINDSIGHT
    float sure = sureness(now) * sureness(now), sure_before = sureness(past) * sureness(past);
    float told = (1.0 - sure_before) * sure / (sure + sure_before + 0.001);
    steady = vec4(vec3(0.0), mix(past, now, max(passed, told * (1.0 - least))));
#else
    float weight = mix(least, 1.0, sureness(now) * smoothstep(0.0, CLEAR_CHANGE, abs(now - past)));
    steady = vec4(vec3(0.0), mix(past, now, weight));
#endif
}

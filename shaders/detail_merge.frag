#version 330
// The network's output tensor for a part of the frame goes in, and the sums of other parts; the sums with it come out,
// of logits in red, of weights in green: the definition is in app/frame/refinement/detail.py. Row 0 is the top row.
#define GRID_W 384
#define GRID_H 384
#include "mask.glsl"

const float SURE = 0.001;  // of how much a value may differ from 0 or 1 at least
const vec2 LESS = vec2(0.2, 0.4), MORE = vec2(0.2, 0.5);  // up to which a part is trusted, and from which not at all

uniform sampler2D before;
uniform float first;  // 1 for the first part, which nothing comes before
uniform vec4 view;  // the part: left and top in parts of the grid, and by what they are multiplied within it
uniform vec4 fade;  // the same of weights, from the sides left, top, right and bottom
uniform float share;
uniform sampler2D doubt;  // how much more of a person the part shows than those before it, around each place
out vec4 sums;

float clamped(int x, int y) {
    return mask_at(clamp(x, 0, MASK_W - 1), clamp(y, 0, MASK_H - 1));
}

float trust(vec2 place) {
    ivec2 last = textureSize(doubt, 0) - 1;
    vec2 cell = place * vec2(last + 1) - 0.5, part = fract(cell);
    ivec2 near = clamp(ivec2(floor(cell)), ivec2(0), last), far = clamp(ivec2(floor(cell)) + 1, ivec2(0), last);
    float above = mix(texelFetch(doubt, near, 0).r, texelFetch(doubt, ivec2(far.x, near.y), 0).r, part.x);
    float below = mix(texelFetch(doubt, ivec2(near.x, far.y), 0).r, texelFetch(doubt, far, 0).r, part.x);
    float more = mix(above, below, part.y);
    return (1.0 - smoothstep(LESS.x, LESS.y, -more)) * (1.0 - smoothstep(MORE.x, MORE.y, more));
}

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    vec2 here = (vec2(at) + 0.5) / vec2(GRID_W, GRID_H), part = (here - view.xy) * view.zw;
    vec2 near = min(clamp(part * fade.xy, 0.0, 1.0), clamp((1.0 - part) * fade.zw, 0.0, 1.0));
    float weight = near.x * near.y;
    weight = weight * weight * (3.0 - 2.0 * weight) * share * (first > 0.5 ? 1.0 : trust(here));
    vec2 place = clamp(part, 0.0, 1.0) * vec2(MASK_W, MASK_H) - 0.5;
    ivec2 whole = ivec2(floor(place));
    vec2 rest = place - vec2(whole);
    float above = mix(clamped(whole.x, whole.y), clamped(whole.x + 1, whole.y), rest.x);
    float below = mix(clamped(whole.x, whole.y + 1), clamped(whole.x + 1, whole.y + 1), rest.x);
    float value = clamp(mix(above, below, rest.y), SURE, 1.0 - SURE);
    vec4 past = first > 0.5 ? vec4(0.0) : texelFetch(before, at, 0);
    sums = past + vec4(weight * log(value / (1.0 - value)), weight, 0.0, 0.0);
}

// The frame's planes as they were uploaded go in, red, green and blue of upright pixels come out.
// Its size as stored.
#define STORED_W 640
#define STORED_H 480
#include "sampling.glsl"

#if __VERSION__ >= 420
layout(binding = 0)
#endif
uniform sampler2D frame_0;

// A pixel of the frame.
vec3 frame_at(ivec2 at) {
    return texelFetch(frame_0, at, 0).rgb;
}

// The frame at (at * step + start) / den, interpolated between four pixels, the outermost of which repeat.
vec3 frame_between(ivec2 at, ivec2 step, ivec2 start, ivec2 den) {
    ivec2 whole;
    vec2 part;
    locate(at.x, step.x, start.x, den.x, whole.x, part.x);
    locate(at.y, step.y, start.y, den.y, whole.y, part.y);
    ivec2 last = ivec2(STORED_W, STORED_H) - 1;
    ivec2 near = clamp(whole, ivec2(0), last), far = clamp(whole + 1, ivec2(0), last);
    vec3 top = mix(frame_at(near), frame_at(ivec2(far.x, near.y)), part.x);
    vec3 bottom = mix(frame_at(ivec2(near.x, far.y)), frame_at(far), part.x);
    return mix(top, bottom, part.y);
}

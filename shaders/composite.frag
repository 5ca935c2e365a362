#version 330
// The frame's planes and the network's output tensor go in, the picture with its effect comes out.
// A target larger than the frame repeats the frame's last row and column.
// 0 tints the person; 1 replaces the background by an image, 2 by a color, 3 by the blurred background, 4 by
// transparency; 5 shows the mask, 6 the frame; 7 is 4 over a checkerboard. Not a uniform: software GL would compute all.
#define EFFECT 0
// Light wrap: whether light of the background spills over the person's edge.
#define WRAPS 0
// Whether pixels that show person and background get the person's own color: 1 as app/frame/drawing/foreground.py
// estimates it, 2 as the network puts it out (app/frame/refinement/own_colors.py).
#define UNMIXED 0
// Whether colors under transparency are no finer than what is seen of them.
#define CLEARS 0
#include "frame.glsl"
#include "person.glsl"
#include "checker.glsl"
#include "cleared.glsl"

uniform sampler2D background;  // of the frame's size
uniform sampler2D blurred;  // premultiplied, one pixel per cell of the frame
uniform int factor;  // pixels of the frame along a side of a cell
uniform sampler2D light;  // the same for the new background
uniform int light_factor;
uniform float light_wrap;  // strength of the light wrap
uniform sampler2D apart;  // the person's color less that of what is behind, in steps of some pixels
uniform float steps_per_pixel;
uniform sampler2D own_colors;  // the person's color less the frame's, on the network's grid
uniform vec4 color;  // a is the strength of a tint
uniform int height;  // of the target, counted from the bottom: with origin_upper_left some drivers are off by one row
out vec4 picture;

#if EFFECT == 3 || WRAPS
vec4 cell(sampler2D cells, int factor, ivec2 at) {
    ivec2 last = (ivec2(FRAME_W, FRAME_H) - 1) / factor;
    return texelFetch(cells, clamp(at, ivec2(0), last), 0);
}

vec4 spread(sampler2D cells, int factor, ivec2 at) {
    vec2 place = (vec2(at) + 0.5) / float(factor) - 0.5;
    ivec2 first = ivec2(floor(place));
    vec2 part = place - vec2(first);
    vec4 above = mix(cell(cells, factor, first), cell(cells, factor, first + ivec2(1, 0)), part.x);
    vec4 below = mix(cell(cells, factor, first + ivec2(0, 1)), cell(cells, factor, first + 1), part.x);
    return mix(above, below, part.y);
}
#endif

#if EFFECT == 3
const float TINY = 1.0 / 4096.0;  // where there is hardly any background nearby, the frame is used

vec3 blurred_at(ivec2 at, vec3 pixel) {
    vec4 sum = spread(blurred, factor, at);
    return (sum.rgb + TINY * pixel) / (sum.a + TINY);
}
#endif

#if UNMIXED == 2
vec3 lighter_by(ivec2 at) {
    int x, y;
    float x_part, y_part;
    locate_covering(at, x, x_part, y, y_part);
    ivec2 last = ivec2(MASK_W, MASK_H) - 1;
    ivec2 near = clamp(ivec2(x, y), ivec2(0), last), far = clamp(ivec2(x, y) + 1, ivec2(0), last);
    vec4 above = mix(texelFetch(own_colors, near, 0), texelFetch(own_colors, ivec2(far.x, near.y), 0), x_part);
    vec4 below = mix(texelFetch(own_colors, ivec2(near.x, far.y), 0), texelFetch(own_colors, far, 0), x_part);
    return mix(above, below, y_part).rgb;
}
#endif

void main() {
    ivec2 drawn = ivec2(gl_FragCoord.xy);
    ivec2 place = min(ivec2(drawn.x, height - 1 - drawn.y), ivec2(FRAME_W, FRAME_H) - 1), at = mirrored(place);
    vec3 pixel = frame_at(at);
    float person = person_at(at, pixel, true), alpha = 1.0;
#if EFFECT == 3
    vec3 behind = blurred_at(at, pixel);
#elif EFFECT == 1
    vec3 behind = texelFetch(background, place, 0).rgb;
#elif EFFECT == 2
    vec3 behind = color.rgb;
#elif EFFECT == 7
    vec3 behind = checkered(place);
#endif
#if UNMIXED == 2
    pixel = clamp(pixel + lighter_by(at), 0.0, 1.0);
#elif UNMIXED
    float own = person;
#if EDGED
    own = max(own, shaped(mask_over(at, pixel, true)));
#endif
    vec3 difference = texelFetch(apart, ivec2((vec2(at) + 0.5) * steps_per_pixel), 0).rgb;
    pixel = clamp(pixel + (1.0 - own) * difference, 0.0, 1.0);
#endif
#if WRAPS
    vec4 near = spread(light, light_factor, at);
    pixel += light_wrap * max(near.rgb - near.a * pixel, 0.0);
#endif
#if EFFECT == 0
    pixel = mix(pixel, color.rgb, color.a * person);
#elif EFFECT == 4
    alpha = person;
#elif EFFECT == 5
    pixel = vec3(person);
#elif EFFECT != 6
    pixel = mix(behind, pixel, person);
#endif
#if CLEARS
    picture = cleared(pixel, alpha);
#else
    picture = vec4(pixel, alpha);
#endif
}

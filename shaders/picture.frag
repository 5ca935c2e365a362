#version 330
// The frame's planes and the picture that a network puts out, its output tensor, go in; the two mixed come out: the
// definition is in app/frame/drawing/network_picture.py.
// The numbers of effects are those of composite.frag, and 9: the network's picture over the frame.
#define EFFECT 9
#define FRAME_W 640
#define FRAME_H 480
// Columns and rows of the network's picture, whose texels are red, green, blue and, if it HAS_ALPHA, alpha.
#define PICTURE_W 256
#define PICTURE_H 256
#define HAS_ALPHA 0
// What black is in it, and 1 / (white - black).
#define LOW 0.0
#define SCALE 1.0
#define X_STEP 512
#define X_START -384
#define X_DEN 1280
#define Y_STEP 512
#define Y_START -224
#define Y_DEN 960
// Whether parts of the frame were cropped away.
#define UNSEEN 0
// Whether colors under transparency are no finer than what is seen of them.
#define CLEARS 0
#include "frame.glsl"
#include "look.glsl"
#include "checker.glsl"
#include "cleared.glsl"
#include "texels.glsl"
#include "covering.glsl"

uniform sampler2D background;  // of the frame's size
uniform vec4 color;
uniform float strength;
uniform int height;  // of the target, counted from the bottom
out vec4 picture;

vec4 texel(int x, int y) {
    ivec2 at = clamp(ivec2(x, y), ivec2(0), ivec2(PICTURE_W, PICTURE_H) - 1);
    vec4 value = clamp((texel_at(at.y * PICTURE_W + at.x) - LOW) * SCALE, 0.0, 1.0);
#if HAS_ALPHA
    return value;
#else
    return vec4(value.rgb, 1.0);
#endif
}

vec4 network_at(ivec2 at) {
#if UNSEEN
    if (!is_covered(at, ivec2(PICTURE_W, PICTURE_H))) return vec4(0.0);
#endif
    int x, y;
    float x_part, y_part;
    locate_covering(at, x, x_part, y, y_part);
    vec4 above = mix(texel(x, y), texel(x + 1, y), x_part);
    return mix(above, mix(texel(x, y + 1), texel(x + 1, y + 1), x_part), y_part);
}

void main() {
    ivec2 drawn = ivec2(gl_FragCoord.xy);
    ivec2 place = min(ivec2(drawn.x, height - 1 - drawn.y), ivec2(FRAME_W, FRAME_H) - 1), at = mirrored(place);
    vec3 pixel = frame_at(at);
#if EFFECT == 6
    picture = vec4(pixel, 1.0);
#else
    vec4 made = network_at(at);
#if EFFECT == 9
    picture = vec4(mix(pixel, made.rgb, strength * made.a), 1.0);
#elif EFFECT == 5
    picture = vec4(vec3(made.a), 1.0);
#else
    vec3 person = mix(pixel, made.rgb, strength);
#if EFFECT == 4
#if CLEARS
    picture = cleared(person, made.a);
#else
    picture = vec4(person, made.a);
#endif
#else
#if EFFECT == 1
    vec3 behind = texelFetch(background, place, 0).rgb;
#elif EFFECT == 2
    vec3 behind = color.rgb;
#else
    vec3 behind = checkered(place);
#endif
    picture = vec4(mix(behind, person, made.a), 1.0);
#endif
#endif
#endif
}

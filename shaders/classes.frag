#version 330
// The frame's planes and the scores of all classes, a network's output tensor, go in; the frame in the colors of the
// classes comes out: the definition is in app/frame/drawing/classes.py.
#define FRAME_W 640
#define FRAME_H 480
// Columns and rows of the scores, and how many classes there are, four to a texel, slice behind slice.
#define SCORES_W 256
#define SCORES_H 256
#define CLASSES 21
#define X_STEP 512
#define X_START -384
#define X_DEN 1280
#define Y_STEP 512
#define Y_START -224
#define Y_DEN 960
// Whether parts of the frame were cropped away.
#define UNSEEN 0
// How much of a class' color there is.
#define SHARE 0.6
// Where the legend begins, and its size; no legend where that is 0.
#define LEGEND_X 0
#define LEGEND_Y 0
#define LEGEND_W 0
#define LEGEND_H 0
#include "frame.glsl"
#include "look.glsl"
#include "texels.glsl"
#include "covering.glsl"

uniform sampler2D legend;  // premultiplied
uniform int height;  // of the target, counted from the bottom
out vec4 picture;

// PASCAL VOC's: bits 0, 3 and 6 of the number are the highest of red, bits 1, 4 and 7 of green, bits 2, 5 of blue.
vec3 class_color(int number) {
    ivec3 color = ivec3(0);
    for (int bit = 7; bit >= 0; bit--, number >>= 3)
        color |= ((ivec3(number) >> ivec3(0, 1, 2)) & 1) << bit;
    return vec3(color) / 255.0;
}

const int PLANE_TEXELS = SCORES_W * SCORES_H;

int pixel_at(int x, int y) {
    return clamp(y, 0, SCORES_H - 1) * SCORES_W + clamp(x, 0, SCORES_W - 1);
}

// The first of the classes whose interpolated score is the highest.
int class_at(ivec2 at) {
    int x, y;
    float x_part, y_part;
    locate_covering(at, x, x_part, y, y_part);
    ivec4 pixels = ivec4(pixel_at(x, y), pixel_at(x + 1, y), pixel_at(x, y + 1), pixel_at(x + 1, y + 1));
    int found = 0;
    float most = -3.4e38;
    for (int first = 0; first < CLASSES; first += 4, pixels += PLANE_TEXELS) {
        vec4 above = mix(texel_at(pixels.x), texel_at(pixels.y), x_part);
        vec4 values = mix(above, mix(texel_at(pixels.z), texel_at(pixels.w), x_part), y_part);
        for (int i = 0; i < 4; i++) {
            if (first + i < CLASSES && values[i] > most) {
                most = values[i];
                found = first + i;
            }
        }
    }
    return found;
}

void main() {
    ivec2 drawn = ivec2(gl_FragCoord.xy);
    ivec2 place = min(ivec2(drawn.x, height - 1 - drawn.y), ivec2(FRAME_W, FRAME_H) - 1), at = mirrored(place);
    vec3 pixel = frame_at(at);
    float share = SHARE;
#if UNSEEN
    if (!is_covered(at, ivec2(SCORES_W, SCORES_H))) share = 0.0;
#endif
    pixel = mix(pixel, class_color(class_at(at)), share);
#if LEGEND_W
    ivec2 within = place - ivec2(LEGEND_X, LEGEND_Y);
    if (min(within.x, within.y) >= 0 && within.x < LEGEND_W && within.y < LEGEND_H) {
        vec4 over = texelFetch(legend, within, 0);
        pixel = over.rgb + (1.0 - over.a) * pixel;
    }
#endif
    picture = vec4(pixel, 1.0);
}

#version 430
// The network's output tensor goes in, a float mask of the frame's size comes out: the definition is in
// app/picture/preprocess.py. Rows and columns of the result are padded to multiples of 4, so that no store is conditional.
#define GROUP_X 32
#define GROUP_Y 4
#define FRAME_W 640
#define FRAME_H 480
#define X_STEP 512
#define X_START -384
#define X_DEN 1280
#define Y_STEP 512
#define Y_START -224
#define Y_DEN 960
// The most columns and rows of the mask under any 4x4 pixels of the frame. 0: too many, each pixel reads its own.
#define SPAN_X 4
#define SPAN_Y 4
// Whether parts of the frame were cropped away.
#define UNSEEN 0
#define TEXELS_UNIT 0
#include "sampling.glsl"
#include "mask.glsl"

layout(local_size_x = GROUP_X, local_size_y = GROUP_Y) in;
layout(std430, binding = 0) writeonly buffer FrameMask { vec4 frame_mask[]; };

const int WIDTH_IN_FOURS = (FRAME_W + 3) / 4, HEIGHT_IN_FOURS = (FRAME_H + 3) / 4;

float clamped(int x, int y) {
    return mask_at(clamp(x, 0, MASK_W - 1), clamp(y, 0, MASK_H - 1));
}

void main() {
    ivec2 tile = ivec2(gl_GlobalInvocationID.xy);
    if (tile.x >= WIDTH_IN_FOURS || tile.y >= HEIGHT_IN_FOURS) return;
    ivec4 x, y;
    vec4 x_part, y_part, rows[4] = vec4[](vec4(0.0), vec4(0.0), vec4(0.0), vec4(0.0));
    for (int i = 0; i < 4; i++) {
        locate(tile.x * 4 + i, X_STEP, X_START, X_DEN, x[i], x_part[i]);
        locate(tile.y * 4 + i, Y_STEP, Y_START, Y_DEN, y[i], y_part[i]);
    }
#if SPAN_X * SPAN_Y > 0
    // Bilinear weights by distance, so that each value is read once for all 16 pixels.
    vec4 columns = vec4(x - x[0]) + x_part, lines = vec4(y - y[0]) + y_part;
    for (int j = 0; j < SPAN_Y; j++) {
        vec4 line = vec4(0.0);
        for (int i = 0; i < SPAN_X; i++)
            line += clamped(x[0] + i, y[0] + j) * max(1.0 - abs(columns - float(i)), 0.0);
        vec4 weights = max(1.0 - abs(lines - float(j)), 0.0);
        for (int r = 0; r < 4; r++) rows[r] += line * weights[r];
    }
#else
    for (int r = 0; r < 4; r++)
        for (int i = 0; i < 4; i++)
            rows[r][i] = mix(mix(clamped(x[i], y[r]), clamped(x[i] + 1, y[r]), x_part[i]),
                             mix(clamped(x[i], y[r] + 1), clamped(x[i] + 1, y[r] + 1), x_part[i]), y_part[r]);
#endif
    for (int r = 0; r < 4; r++) {
#if UNSEEN
        for (int i = 0; i < 4; i++) {
            ivec2 at = tile * 4 + ivec2(i, r);
            bool seen_x = is_inside(at.x, X_STEP, X_START, X_DEN, MASK_W);
            bool seen_y = is_inside(at.y, Y_STEP, Y_START, Y_DEN, MASK_H);
            rows[r][i] *= float(seen_x && seen_y);
        }
#endif
        frame_mask[(tile.y * 4 + r) * WIDTH_IN_FOURS + tile.x] = rows[r];
    }
}

#version 430
// Outputs of a network with a row for each box go in; rows that it is sure of come out, in any order: all that is read of
// them (app/frame/finding/row_pass.py).
#define GROUP 64
#define ROWS 8400
// The scores: which columns of how many, the column that they are multiplied by, if any (-1), and the least that counts.
#define FIRST 4
#define CLASSES 80
#define SCORE_COLUMNS 84
#define FACTOR -1
#define LEAST 0.5
// Columns of the boxes that come along: some from one column on, then some from another one on.
#define BOX_COLUMNS 84
#define FROM_A 0
#define COUNT_A 4
#define FROM_B 0
#define COUNT_B 0
// Whether a row's values lie one below the other.
#define ROWS_LAST 0
#define MOST 256
// How outputs lie in memory: the channels of a pixel, pixels, and lanes of a texel, 4 or 1.
#define SCORE_CHANNELS 84
#define SCORE_PIXELS 8400
#define SCORE_LANES 4
#define BOX_CHANNELS 84
#define BOX_PIXELS 8400
#define BOX_LANES 4
#include "tensor_places.glsl"

layout(local_size_x = GROUP) in;
// How many there are, which may be more than MOST; of each the number of its row, its best class and that one's score.
layout(std430, binding = 0) buffer Found { uint count; float found[]; };
layout(std430, binding = 1) readonly buffer Scores { float scores[]; };
layout(std430, binding = 2) readonly buffer Boxes { float boxes[]; };

float score_at(int row, int column) {
    int i = ROWS_LAST == 1 ? column * ROWS + row : row * SCORE_COLUMNS + column;
    return scores[place_of(i, SCORE_CHANNELS, SCORE_PIXELS, SCORE_LANES)];
}

float box_at(int row, int column) {
    int i = ROWS_LAST == 1 ? column * ROWS + row : row * BOX_COLUMNS + column;
    return boxes[place_of(i, BOX_CHANNELS, BOX_PIXELS, BOX_LANES)];
}

void main() {
    int row = int(gl_GlobalInvocationID.x);
    if (row >= ROWS) return;
    float best = -3e38;
    int which = -1;
    for (int k = 0; k < CLASSES; k++) {
        float score = score_at(row, FIRST + k);
        if (score > best && score < 3e38) {
            best = score;
            which = k;
        }
    }
    float counted = best;
#if FACTOR >= 0
    counted *= score_at(row, FACTOR);
#endif
    if (which < 0 || !(counted >= LEAST)) return;
    int place = int(atomicAdd(count, 1u));
    if (place >= MOST) return;
    place *= 3 + COUNT_A + COUNT_B;
    found[place] = float(row);
    found[place + 1] = float(which);
    found[place + 2] = best;
    for (int k = 0; k < COUNT_A; k++) found[place + 3 + k] = box_at(row, FROM_A + k);
    for (int k = 0; k < COUNT_B; k++) found[place + 3 + COUNT_A + k] = box_at(row, FROM_B + k);
}

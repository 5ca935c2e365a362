#version 430
// The raw numbers of a network with anchors go in, a few detections come out: the definition is in
// app/models/decoders/suppression.py. One work-group does it all, in loops that are short: Mesa's software renderer ends
// those of an invocation after 65535 passes, all together.
#define GROUP 128
#define ANCHORS 896
#define COLUMNS 16
#define MOST 8
// Of raw scores; then what score and overlap a detection has at least.
#define CLIP 100.0
#define LEAST_SCORE 0.5
#define LEAST_IOU 0.3
#define MOST_FRACTION 1e6
// By which offsets are divided.
#define SCALE vec2(128.0)
// How scores and boxes lie in memory: the channels of a pixel, pixels, and lanes of a texel, 4 or 1.
#define SCORE_CHANNELS 1
#define SCORE_PIXELS 896
#define SCORE_LANES 1
#define BOX_CHANNELS 16
#define BOX_PIXELS 896
#define BOX_LANES 4
#include "tensor_places.glsl"

layout(local_size_x = GROUP) in;
// How many there are, then score, box and points of each.
layout(std430, binding = 0) writeonly buffer Found { float found[]; };
// Candidates, in the order of anchors: boxes, scores, whose sign is turned while one joins the best and which are 0 when it
// is gone, and numbers of anchors; then those that join.
layout(std430, binding = 1) coherent buffer Kept {
    vec4 anchors[ANCHORS];
    vec4 boxes[ANCHORS];
    float scores[ANCHORS];
    int numbers[ANCHORS];
    int joining[ANCHORS];
};
layout(std430, binding = 2) readonly buffer RawScores { float raw_scores[]; };
layout(std430, binding = 3) readonly buffer RawBoxes { float raw_boxes[]; };

shared int counts[GROUP];
shared float best_scores[GROUP];
shared int bests[GROUP];

// 0 to 1; 0 for what is no candidate.
float score_of(int anchor) {
    float raw = raw_scores[place_of(anchor, SCORE_CHANNELS, SCORE_PIXELS, SCORE_LANES)];
    float score = 1.0 / (1.0 + exp(-clamp(raw, -CLIP, CLIP)));
    return !isnan(raw) && score >= LEAST_SCORE ? score : 0.0;
}

// A column of a box with its points, as a fraction of the input.
float value_of(int anchor, int column) {
    float raw = raw_boxes[place_of(anchor * COLUMNS + column, BOX_CHANNELS, BOX_PIXELS, BOX_LANES)];
    vec4 own = anchors[anchor];
    int axis = column & 1;
    float value = raw / SCALE[axis] * own[2 + axis];
    return column == 2 || column == 3 ? value : value + own[axis];
}

bool is_sound(int anchor) {
    bool sound = value_of(anchor, 2) > 0.0 && value_of(anchor, 3) > 0.0;
    for (int column = 0; column < COLUMNS; column++) sound = sound && abs(value_of(anchor, column)) <= MOST_FRACTION;
    return sound;
}

float overlap(vec4 a, vec4 b) {
    vec2 meet = min(a.xy + a.zw / 2.0, b.xy + b.zw / 2.0) - max(a.xy - a.zw / 2.0, b.xy - b.zw / 2.0);
    float shared_area = max(meet.x, 0.0) * max(meet.y, 0.0);
    float joint = a.z * a.w + b.z * b.w - shared_area;
    return joint > 0.0 ? shared_area / joint : 0.0;
}

void wait_for_all() {
    memoryBarrierBuffer();
    memoryBarrierShared();
    barrier();
}

// Candidates of one invocation's anchors, kept from `first` on where that is not negative; how many there are.
int candidates(int thread, int first) {
    int each = (ANCHORS + GROUP - 1) / GROUP, count = 0;
    for (int n = thread * each; n < min((thread + 1) * each, ANCHORS); n++) {
        float score = score_of(n);
        if (score > 0.0 && is_sound(n)) {
            if (first >= 0) {
                boxes[first + count] = vec4(value_of(n, 0), value_of(n, 1), value_of(n, 2), value_of(n, 3));
                scores[first + count] = score;
                numbers[first + count] = n;
            }
            count++;
        }
    }
    return count;
}

// The best candidate that is left, of equal ones the first; its score is 0 where none is. Each invocation looks at some
// that follow one another.
void find_best(int thread, int begin, int end) {
    float best_score = 0.0;
    int best = 0;
    for (int i = begin; i < end; i++)
        if (scores[i] > best_score) {
            best_score = scores[i];
            best = i;
        }
    best_scores[thread] = best_score;
    bests[thread] = best;
    wait_for_all();
    for (int step = GROUP / 2; step > 0; step /= 2) {
        if (thread < step) {
            float other_score = best_scores[thread + step];
            int other = bests[thread + step];
            bool is_better = other_score > best_scores[thread];
            bool comes_first = other_score == best_scores[thread] && other < bests[thread];
            if (is_better || comes_first) {
                best_scores[thread] = other_score;
                bests[thread] = other;
            }
        }
        wait_for_all();
    }
}

void main() {
    int thread = int(gl_LocalInvocationID.x), all = 0, first = 0, number = 0;
    counts[thread] = candidates(thread, -1);
    wait_for_all();
    for (int i = 0; i < GROUP; i++) {
        first += i < thread ? counts[i] : 0;
        all += counts[i];
    }
    candidates(thread, first);
    wait_for_all();
    int each = (all + GROUP - 1) / GROUP, begin = min(thread * each, all), end = min(begin + each, all);
    for (int turn = 0; turn < MOST; turn++) {
        find_best(thread, begin, end);
        float best_score = best_scores[0];
        vec4 best_box = boxes[bests[0]];
        int count = 0, place = 0, joined = 0;
        for (int i = begin; i < end; i++)
            if (scores[i] > 0.0 && (i == bests[0] || overlap(best_box, boxes[i]) > LEAST_IOU)) {
                scores[i] = -scores[i];
                count++;
            }
        counts[thread] = count;
        wait_for_all();
        for (int i = 0; i < GROUP; i++) {
            place += i < thread ? counts[i] : 0;
            joined += counts[i];
        }
        for (int i = begin; i < end; i++)
            if (scores[i] < 0.0) joining[place++] = i;
        wait_for_all();
        for (int column = thread; column < COLUMNS && joined > 0; column += GROUP) {
            float sum = 0.0, weights = 0.0;
            for (int k = 0; k < joined; k++) {
                float weight = -scores[joining[k]];
                sum += value_of(numbers[joining[k]], column) * weight;
                weights += weight;
            }
            found[1 + turn * (1 + COLUMNS) + 1 + column] = sum / weights;
        }
        if (thread == 0 && joined > 0) found[1 + turn * (1 + COLUMNS)] = best_score;
        number += int(joined > 0);
        wait_for_all();
        for (int i = begin; i < end; i++) scores[i] = max(scores[i], 0.0);
        wait_for_all();
    }
    if (thread == 0) found[0] = float(number);
}

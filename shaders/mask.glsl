// Reads the network's mask out of its output tensor, whatever that tensor's layout, activation and class.
#define MASK_W 256
#define MASK_H 256
#define CHANNELS 1
#define CHANNEL 0
// What the tensor's values are multiplied by: 1, or the scale of a quantized one.
#define SCALE 1.0
// The activation that is still to be applied: 0 nothing, 1 sigmoid, 2 softmax over the channels.
#define ACTIVATION 0
// Whether the mask is of several classes: of those whose numbers are the GROUP. Of values that are to get a softmax, or
// that add up to 1 without one, it is the sum, else the greatest.
#define GROUPED 0
#define GROUP int[](0, 1)
#define ADDS 0
// Texels are of four channels of a pixel in PHWC4, of one in a plain tensor.
#include "texels.glsl"

#if GROUPED
const int group[] = GROUP;

float score_of(int i, int pixel) {
    return SCALE * texel_at(i / STRIDE * MASK_W * MASK_H + pixel)[i % STRIDE];
}

float mask_at(int x, int y) {
    int pixel = y * MASK_W + x;
    float most = score_of(group[0], pixel), sum = 0.0;
#if ACTIVATION == 2
    for (int i = 0; i < CHANNELS; i++) most = max(most, score_of(i, pixel));
    float all = 0.0;
    for (int i = 0; i < CHANNELS; i++) all += exp(score_of(i, pixel) - most);
    for (int i = 0; i < group.length(); i++) sum += exp(score_of(group[i], pixel) - most);
    return sum / all;
#else
    for (int i = 0; i < group.length(); i++) {
        float value = score_of(group[i], pixel);
        most = max(most, value);
        sum += value;
    }
#if ACTIVATION == 1
    return 1.0 / (1.0 + exp(min(-most, 60.0)));
#else
    return ADDS == 1 ? sum : most;
#endif
#endif
}
#else
float mask_at(int x, int y) {
    int pixel = y * MASK_W + x;
    float value = SCALE * texel_at(CHANNEL / STRIDE * MASK_W * MASK_H + pixel)[CHANNEL % STRIDE];
#if ACTIVATION == 1
    return 1.0 / (1.0 + exp(min(-value, 60.0)));  // as below
#elif ACTIVATION == 2
    float sum = 0.0;
    for (int i = 0; i < CHANNELS; i++)
        sum += exp(SCALE * texel_at(i / STRIDE * MASK_W * MASK_H + pixel)[i % STRIDE] - value);
    return 1.0 / sum;
#else
    return abs(value) < 1e-30 ? 0.0 : value;  // denormal numbers, common far from the person, halve the speed of a CPU
#endif
}
#endif

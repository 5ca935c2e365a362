#version 430
// A frame's planes go in, the network's input comes out (PHWC4, one slice): the definition is in app/picture/preprocess.py.
#define GROUP_X 64
#define GROUP_Y 4
#define FRAME_W 640
#define FRAME_H 480
#define TENSOR_W 256
#define TENSOR_H 256
#define X_STEP 1280
#define X_START 384
#define X_DEN 512
#define Y_STEP 960
#define Y_START 224
#define Y_DEN 512
#define LOW 0.0
#define HIGH 1.0
// Whether the tensor is of whole numbers, from LEAST to MOST: steps of a quantized network.
#define WHOLE 0
#define LEAST 0.0
#define MOST 255.0
// Whether there are bars around the frame.
#define BARS 0
// Whether the frame is sampled bilinearly and its light left as it is.
#define PLAIN 1
#include "frame_mean.glsl"
#include "requantize.glsl"

layout(local_size_x = GROUP_X, local_size_y = GROUP_Y) in;
layout(std430, binding = 0) writeonly buffer Tensor { vec4 tensor[]; };
#if !PLAIN
layout(std430, binding = 1) readonly buffer Exposure { float gain; };
#endif

void main() {
    ivec2 at = ivec2(gl_GlobalInvocationID.xy);
    if (at.x >= TENSOR_W || at.y >= TENSOR_H) return;
#if PLAIN
    vec3 color = frame_between(at, ivec2(X_STEP, Y_STEP), ivec2(X_START, Y_START), ivec2(X_DEN, Y_DEN));
#else
    vec3 color = min(gain * frame_mean(at), 1.0);
#endif
    color = LOW + (HIGH - LOW) * color;
#if BARS
    bool seen = is_inside(at.x, X_STEP, X_START, X_DEN, FRAME_W) && is_inside(at.y, Y_STEP, Y_START, Y_DEN, FRAME_H);
    color = seen ? color : vec3(LOW);
#endif
#if WHOLE
    color = clamp(round_away(vec4(color, 0.0)).rgb, LEAST, MOST);
#endif
    tensor[at.y * TENSOR_W + at.x] = vec4(color, 0.0);
}

// The words in which kernels speak of memory. A tensor is PHWC4: texel ((slice * H) + y) * W + x holds four channels.
//   READ(in0, i)       one vec4 of an input; what stands behind in0 is chosen for each device
//   WEIGHT(i)          one vec4 of the kernel's weights
//   WRITE(out0, i, v)  one vec4 of an output
//   keep(v, n)         the first n lanes of v, zeros behind them
//   SYNC()             waits for the work-group, and lets it see what its threads wrote to shared memory

#define SYNC() memoryBarrierShared(); barrier()
#define READ(tensor, i) tensor(i)
#define WEIGHT(i) texelFetch(weights, i)
#define WRITE(tensor, i, v) tensor[i] = v

vec4 keep(vec4 v, int lanes) {
    return mix(vec4(0.0), v, lessThan(ivec4(0, 1, 2, 3), ivec4(lanes)));
}

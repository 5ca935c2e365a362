#version 330
// A mask goes in, the means of its cells come out; beyond the mask's edges its last row and column are repeated.
uniform sampler2D mask;
uniform int factor;  // pixels along a side of a cell
out float cell;

void main() {
    ivec2 corner = factor * ivec2(gl_FragCoord.xy), last = textureSize(mask, 0) - 1;
    float sum = 0.0;
    for (int j = 0; j < factor; j++)
        for (int i = 0; i < factor; i++) sum += texelFetch(mask, min(corner + ivec2(i, j), last), 0).r;
    cell = sum / float(factor * factor);
}

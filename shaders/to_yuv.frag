#version 330
// A picture goes in; its codes of luma and chroma come out one after the other, as they lie in memory: the top row of
// luma in the target's row 0, then chroma below. Transparent pixels become black. A picture smaller than WIDTH x HEIGHT
// repeats its last row and column.
#define WIDTH 640
#define HEIGHT 480
// 0 luma; 1 a plane of Cb, then one of Cr; 2 one plane with Cb and Cr in turn. Each is drawn over its own rows: in one
// shader software GL would compute all of them for each pixel.
#define PART 0
// Luma, Cb and Cr are TO_YUV * rgb + OFFSET.
#define TO_YUV mat3(1.0)
#define OFFSET vec3(0.0)

uniform sampler2D picture;  // row 0 is the bottom row
out float code;

vec3 samples_at(int x, int y) {
    ivec2 size = textureSize(picture, 0);
    vec4 pixel = texelFetch(picture, ivec2(min(x, size.x - 1), max(size.y - 1 - y, 0)), 0);
    return TO_YUV * (pixel.rgb * pixel.a) + OFFSET;
}

#if PART > 0
// Chroma is sited amid the four pixels that it averages.
vec2 chroma_at(int x, int y) {
    vec3 above = samples_at(2 * x, 2 * y) + samples_at(2 * x + 1, 2 * y);
    vec3 below = samples_at(2 * x, 2 * y + 1) + samples_at(2 * x + 1, 2 * y + 1);
    return (above.yz + below.yz) / 4.0;
}
#endif

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
#if PART == 0
    float value = samples_at(at.x, at.y).x;
#elif PART == 1
    const int PLANE = WIDTH * HEIGHT / 4;
    int index = (at.y - HEIGHT) * WIDTH + at.x, rest = index % PLANE;
    vec2 chroma = chroma_at(rest % (WIDTH / 2), rest / (WIDTH / 2));
    float value = index < PLANE ? chroma.x : chroma.y;
#else
    vec2 chroma = chroma_at(at.x / 2, at.y - HEIGHT);
    float value = at.x % 2 == 0 ? chroma.x : chroma.y;
#endif
    code = floor(clamp(value, 0.0, 1.0) * 255.0 + 0.5) / 255.0;  // halves are rounded up
}

#version 330
// A picture goes in; its codes of luma and chroma come out one after the other, as they lie in memory: the top row of
// luma in the target's row 0, then chroma below. Transparent pixels become black. A picture smaller than WIDTH x HEIGHT
// repeats its last row and column.
#define WIDTH 640
#define HEIGHT 480
// 0 luma; 1 a plane of Cb, then one of Cr; 2 one plane with Cb and Cr in turn. Each is drawn over its own rows: in one
// shader software GL would compute all of them for each pixel. 3: both chromas
// of a target of chroma alone, at once.
#define PART 0
// Luma, Cb and Cr are TO_YUV * rgb + OFFSET.
#define TO_YUV mat3(1.0)
#define OFFSET vec3(0.0)

uniform sampler2D picture;  // row 0 is the bottom row
#if PART == 3
out vec2 code;
#else
out float code;
#endif

vec3 pixel_at(int x, int y) {
    ivec2 size = textureSize(picture, 0);
    vec4 pixel = texelFetch(picture, ivec2(min(x, size.x - 1), max(size.y - 1 - y, 0)), 0);
    return pixel.rgb * pixel.a;
}

#if PART > 0
// Chroma is sited amid the four pixels that it averages.
vec2 chroma_at(int x, int y) {
    vec3 above = pixel_at(2 * x, 2 * y) + pixel_at(2 * x + 1, 2 * y);
    vec3 below = pixel_at(2 * x, 2 * y + 1) + pixel_at(2 * x + 1, 2 * y + 1);
    return (TO_YUV * ((above + below) / 4.0) + OFFSET).yz;
}
#endif

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
#if PART == 0
    float value = (TO_YUV * pixel_at(at.x, at.y) + OFFSET).x;
#elif PART == 1
    const int HALF = WIDTH / 2, ROWS = HEIGHT / 2;
    int right = at.x < HALF ? 0 : 1, row = 2 * (at.y - HEIGHT) + right;  // two rows of a plane lie side by side
    vec2 chroma = chroma_at(at.x - right * HALF, row < ROWS ? row : row - ROWS);
    float value = row < ROWS ? chroma.x : chroma.y;
#elif PART == 2
    vec2 chroma = chroma_at(at.x / 2, at.y - HEIGHT);
    float value = at.x % 2 == 0 ? chroma.x : chroma.y;
#else
    vec2 value = chroma_at(at.x, at.y);
#endif
    code = floor(clamp(value, 0.0, 1.0) * 255.0 + 0.5) / 255.0;  // halves are rounded up
}

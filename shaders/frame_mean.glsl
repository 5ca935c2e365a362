// What of the frame lies under a pixel of the network's input goes in, its mean comes out: the definition is in
// app/picture/preprocess.py. Here columns and rows are those of the stored planes, x before y.
// Of luma (RGBA, gray): where the intervals begin that are averaged, (i * step + start) / den of pixel i, how long they
// are, and how many pixels they touch; then the same of chroma.
#define LUMA_STEP ivec2(2560, 1920)
#define LUMA_START ivec2(0, 0)
#define LUMA_DEN ivec2(1024, 1024)
#define LUMA_LENGTH vec2(2.5, 1.875)
#define LUMA_SPAN ivec2(3, 3)
#define CHROMA_STEP ivec2(2560, 1920)
#define CHROMA_START ivec2(0, 0)
#define CHROMA_DEN ivec2(2048, 2048)
#define CHROMA_LENGTH vec2(1.25, 1.0)
#define CHROMA_SPAN ivec2(3, 2)
#include "frame.glsl"

struct Area { ivec2 step, start, den; vec2 extent; ivec2 span; };

const Area LUMA_AREA = Area(LUMA_STEP, LUMA_START, LUMA_DEN, LUMA_LENGTH, LUMA_SPAN);
const Area CHROMA_AREA = Area(CHROMA_STEP, CHROMA_START, CHROMA_DEN, CHROMA_LENGTH, CHROMA_SPAN);

// How much of the interval's pixels, from the n-th one on, lies in it, along both axes.
vec2 covered(ivec2 n, Place p, Area area) {
    return mix(clamp(p.part + area.extent - vec2(n), 0.0, 1.0), 1.0 - p.part, equal(n, ivec2(0)));
}

// The mean of all samples of a plane's pixels.
vec4 mean_of(sampler2D plane, ivec2 size, ivec2 at, Area area) {
    Place p = place(at, area.step, area.start, area.den);
    vec4 mean = vec4(0.0);
    for (int j = 0; j < area.span.y; j++) {
        vec4 row = vec4(0.0);
        for (int i = 0; i < area.span.x; i++) {
            ivec2 pixel = clamp(p.whole + ivec2(i, j), ivec2(0), size - 1);
            row += covered(ivec2(i), p, area).x * samples_at(plane, pixel);
        }
        mean += covered(ivec2(j), p, area).y * row;
    }
    return mean / (area.extent.x * area.extent.y);
}

// The same for a plane with one sample per pixel; four are fetched at once.
float single_mean(sampler2D plane, ivec2 size, ivec2 at, Area area) {
    Place p = place(at, area.step, area.start, area.den);
    float mean = 0.0;
    for (int j = 0; j < area.span.y; j += 2)
        for (int i = 0; i < area.span.x; i += 2) {
            ivec2 n = ivec2(i, j);
            vec2 corner = (vec2(p.whole + n) + 1.0) / vec2(size);  // that they share
            vec4 four = textureGather(plane, corner);
#if APART
            four = four * (255.0 / 65535.0) + textureGather(plane, corner, 1) * (65280.0 / 65535.0);
#endif
            vec2 near = covered(n, p, area), far = covered(n + 1, p, area);
            mean += near.y * (near.x * four.w + far.x * four.z) + far.y * (near.x * four.x + far.x * four.y);
        }
    return mean / (area.extent.x * area.extent.y);
}

#if LAYOUT >= 4
// Both chromas of pairs.
vec2 pairs_mean(ivec2 at, Area area) {
    Place p = place(at, area.step, area.start, area.den);
    vec2 mean = vec2(0.0);
    for (int j = 0; j < area.span.y; j++)
        for (int i = 0; i < area.span.x; i++) {
            vec2 part = vec2(covered(ivec2(i), p, area).x, covered(ivec2(j), p, area).y);
            mean += part.x * part.y * pair(clamp(p.whole + ivec2(i, j), ivec2(0), CHROMA - 1));
        }
    return mean / (area.extent.x * area.extent.y);
}
#endif

// Red, green and blue of the frame under a pixel of the network's upright input.
vec3 frame_mean(ivec2 at) {
    at = stored_order(at);
#if LAYOUT == 0
    return mean_of(frame_0, STORED, at, LUMA_AREA).rgb;
#elif LAYOUT == 1
    return to_rgb(vec3(single_mean(frame_0, STORED, at, LUMA_AREA)));
#elif LAYOUT == 2
    float cb = single_mean(frame_1, CHROMA, at, CHROMA_AREA), cr = single_mean(frame_2, CHROMA, at, CHROMA_AREA);
    return to_rgb(vec3(single_mean(frame_0, STORED, at, LUMA_AREA), cb, cr));
#elif LAYOUT == 3
    return to_rgb(vec3(single_mean(frame_0, STORED, at, LUMA_AREA), mean_of(frame_1, CHROMA, at, CHROMA_AREA).rg));
#else
    return to_rgb(vec3(mean_of(frame_0, STORED, at, LUMA_AREA).LUMA, pairs_mean(at, CHROMA_AREA)));
#endif
}

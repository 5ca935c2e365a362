#version 330
// Marks go in, lists of them by tile, what they look like comes out, premultiplied: lines and dots with dark rims,
// plates and letters. The definition is in app/frame/drawing/marks.py, the lists are those of mark_tiles.py.
#include "texels.glsl"

uniform sampler2D letters;
uniform ivec2 bits;  // a tile is 2 to their power large
uniform ivec2 corner;  // the first tile that has a list
uniform int across;  // lists of a row of tiles
uniform int height;  // of the target, counted from the bottom
out vec4 picture;

const float RIM = 0.5;  // how dark rims are

void main() {
    ivec2 drawn = ivec2(gl_FragCoord.xy);
    ivec2 at = ivec2(drawn.x, height - 1 - drawn.y);
    vec2 middle = vec2(at) + 0.5;
    int list = ((at.y >> bits.y) - corner.y) * across + (at.x >> bits.x) - corner.x;
    vec2 ends = texel_at(list).xy;
    vec4 laid = vec4(0.0);
    float dark = 0.0;
    for (int nth = int(ends.x); nth < int(ends.y); nth++) {
        vec4 place = texel_at(3 * nth), shape = texel_at(3 * nth + 1);
        float covered = 0.0, rim = 0.0;
        if (shape.z < 0.5) {
            vec2 apart = middle - place.xy, along = place.zw - place.xy;
            float part = clamp(dot(apart, along) * shape.w, 0.0, 1.0);
            float beyond = length(apart - part * along) - shape.x;
            covered = clamp(0.5 - beyond, 0.0, 1.0);
            rim = clamp(shape.y + 0.5 - beyond, 0.0, 1.0) * float(shape.y > 0.0);
        } else if (shape.z < 1.5) {
            vec2 apart = abs(middle - place.xy) - place.zw;
            float beyond = length(max(apart, 0.0)) + min(max(apart.x, apart.y), 0.0) - shape.x;
            covered = clamp(0.5 - beyond, 0.0, 1.0);
        } else {
            ivec2 within = at - ivec2(place.xy);
            if (min(within.x, within.y) >= 0 && within.x < int(shape.x) && within.y < int(shape.y))
                covered = texelFetch(letters, within + ivec2(place.zw), 0).r;
        }
        if (max(covered, rim) > 0.0) {
            vec4 color = texel_at(3 * nth + 2);
            dark = max(dark, RIM * color.a * rim);
            laid = mix(laid, vec4(color.rgb, 1.0), covered * color.a);
        }
    }
    picture = vec4(laid.rgb, laid.a + (1.0 - laid.a) * dark);
}

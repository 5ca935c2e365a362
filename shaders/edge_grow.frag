#version 330
// A mask goes in; it comes out with the greatest, or the least, of the values along a segment through each pixel: the
// definition is in app/frame/drawing/mask_edge.py.
uniform sampler2D mask;
uniform ivec2 direction;
uniform float reach;  // to either side, in steps of the direction
uniform float sense;  // 1: the greatest value, -1: the least
out float grown;

vec2 pair(int steps) {
    ivec2 at = ivec2(gl_FragCoord.xy), last = textureSize(mask, 0) - 1, off = steps * direction;
    float ahead = texelFetch(mask, clamp(at + off, ivec2(0), last), 0).r;
    return sense * vec2(ahead, texelFetch(mask, clamp(at - off, ivec2(0), last), 0).r);
}

void main() {
    int whole = int(reach);
    vec2 ends = pair(0), best = ends;
    for (int i = 1; i <= whole; i++) {
        ends = pair(i);
        best = max(best, ends);
    }
    best = max(best, mix(ends, pair(whole + 1), reach - float(whole)));
    grown = sense * max(best.x, best.y);
}

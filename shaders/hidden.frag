#version 330
// Cells of a part of the frame go in, they come out over an ellipse, softly beyond its edge: the definition is in
// app/frame/drawing/hidden_faces.py. Blurred: cells are smoothed ones, interpolated; else each stays a square.
#define BLURRED 1
#define FRAME_W 640
#define FRAME_H 480
#include "look.glsl"

uniform sampler2D cells;
uniform ivec2 corner;  // pixels of the frame from its upper left to that of the part
uniform int side;  // of a cell
uniform int across;  // cells along a side of the part
uniform int first;  // row of the cells
uniform vec4 cover;  // middle, and 1 / half its width and height
uniform float soft;  // where the edge ends: what the sum of cubes is there
uniform int height;  // of the target, counted from the bottom
out vec4 picture;

vec3 cell(ivec2 at) {
    return texelFetch(cells, clamp(at, ivec2(0), ivec2(across - 1)) + ivec2(0, first), 0).rgb;
}

void main() {
    ivec2 drawn = ivec2(gl_FragCoord.xy);
    ivec2 at = mirrored(ivec2(drawn.x, height - 1 - drawn.y));
    vec2 apart = abs((vec2(at) + 0.5 - cover.xy) * cover.zw);
    float share = clamp((soft - dot(apart * apart, apart)) / (soft - 1.0), 0.0, 1.0);
#if BLURRED
    vec2 place = (vec2(at - corner) + 0.5) / float(side) - 0.5;
    ivec2 whole = ivec2(floor(place));
    vec2 part = place - vec2(whole);
    vec3 above = mix(cell(whole), cell(whole + ivec2(1, 0)), part.x);
    vec3 color = mix(above, mix(cell(whole + ivec2(0, 1)), cell(whole + 1), part.x), part.y);
#else
    vec3 color = cell((at - corner) / side);
#endif
    picture = share * vec4(color, 1.0);
}

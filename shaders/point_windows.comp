#version 430
// Points of a network and its heat maps go in, what the maps have around each point comes out: all that is read of them
// (app/frame/finding/window_pass.py).
#define GROUP 64
#define POINTS 39
// Numbers of each point, x and y first, in pixels of the input.
#define COLUMNS 5
#define SIZE vec2(256.0)
#define MAP_W 64
#define MAP_H 64
#define REACH 4
// How both lie in memory: the channels of a pixel, pixels, and lanes of a texel, 4 or 1.
#define POINT_CHANNELS 195
#define POINT_PIXELS 1
#define POINT_LANES 4
#define MAP_CHANNELS 39
#define MAP_PIXELS 4096
#define MAP_LANES 4
#include "tensor_places.glsl"

layout(local_size_x = GROUP) in;
// The column and the row of each point in its map, then the values around it, row by row; 0 outside of the map.
layout(std430, binding = 0) writeonly buffer Windows { float windows[]; };
layout(std430, binding = 1) readonly buffer Points { float points[]; };
layout(std430, binding = 2) readonly buffer Maps { float maps[]; };

const int SIDE = 2 * REACH + 1, VALUES = SIDE * SIDE;

float coordinate(int point, int axis) {
    float raw = points[place_of(point * COLUMNS + axis, POINT_CHANNELS, POINT_PIXELS, POINT_LANES)];
    float place = raw / SIZE[axis] * vec2(MAP_W, MAP_H)[axis];
    return isnan(raw) ? -1e6 : trunc(clamp(place, -1e6, 1e6));
}

void main() {
    int n = int(gl_GlobalInvocationID.x);
    if (n >= POINTS * VALUES) return;
    int point = n / VALUES, cell = n % VALUES;
    vec2 center = vec2(coordinate(point, 0), coordinate(point, 1));
    if (cell == 0) {
        windows[2 * point] = center.x;
        windows[2 * point + 1] = center.y;
    }
    ivec2 at = ivec2(center) + ivec2(cell % SIDE, cell / SIDE) - REACH;
    bool inside = at == clamp(at, ivec2(0), ivec2(MAP_W - 1, MAP_H - 1));
    int place = place_of((at.y * MAP_W + at.x) * MAP_CHANNELS + point, MAP_CHANNELS, MAP_PIXELS, MAP_LANES);
    windows[2 * POINTS + n] = inside ? maps[inside ? place : 0] : 0.0;
}

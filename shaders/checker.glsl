// The checkerboard that stands for nothing, at a pixel of the picture.
#define CHECKER_SIDE 16

vec3 checkered(ivec2 place) {
    ivec2 square = place / CHECKER_SIDE;
    return vec3((square.x + square.y) % 2 == 0 ? 0.8 : 0.6);
}

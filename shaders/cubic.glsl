// The shares of four pixels in a row in what lies between the two in the middle: Catmull and Rom's spline.
vec4 cubic(float part) {
    float square = part * part, cube = square * part;
    return 0.5 * vec4(2.0 * square - part - cube, 2.0 - 5.0 * square + 3.0 * cube, part + 4.0 * square - 3.0 * cube,
                      cube - square);
}

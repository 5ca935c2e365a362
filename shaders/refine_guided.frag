#version 330
// Mean colors and masks of cells go in; the coefficients come out by which the mask around a cell follows from color,
// dot(rgb, color) + alpha: the definition is in app/frame/refinement/guided.py.
uniform sampler2D cells;
out vec4 fitted;

const int COUNT = 13;
const ivec2 AROUND[COUNT] = ivec2[](  // a list, for loops with bounds of their own are not unrolled
    ivec2(0, -2), ivec2(-1, -1), ivec2(0, -1), ivec2(1, -1), ivec2(-2, 0), ivec2(-1, 0), ivec2(0, 0), ivec2(1, 0),
    ivec2(2, 0), ivec2(-1, 1), ivec2(0, 1), ivec2(1, 1), ivec2(0, 2));
const float COLOR = 0.001, BRIGHTNESS = 0.0025, UNSURE = 0.3, STEEPNESS = 2.0;

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy), last = textureSize(cells, 0) - 1;
    vec4 center = texelFetch(cells, at, 0);
    float weights = 0.0, masks = 0.0;
    vec3 colors = vec3(0.0), products = vec3(0.0), squares = vec3(0.0), mixed = vec3(0.0);
    for (int i = 0; i < COUNT; i++) {
        vec4 cell = texelFetch(cells, clamp(at + AROUND[i], ivec2(0), last), 0);
        float sure = 2.0 * cell.a - 1.0, weight = sure * sure + UNSURE;
        vec3 color = cell.rgb - center.rgb, weighted = weight * color;  // small differences keep most precision
        weights += weight, masks += weight * cell.a, colors += weighted;
        products += weighted * cell.a, squares += weighted * color, mixed += weighted * color.gbr;
    }
    masks /= weights, colors /= weights;
    vec3 covariance = products / weights - colors * masks;
    squares = squares / weights - colors * colors + COLOR + BRIGHTNESS;
    mixed = mixed / weights - colors * colors.gbr + BRIGHTNESS;
    vec3 red = vec3(squares.r, mixed.r, mixed.b), green = vec3(mixed.r, squares.g, mixed.g);
    vec3 blue = vec3(mixed.b, mixed.g, squares.b);
    mat3 cofactors = mat3(cross(green, blue), cross(blue, red), cross(red, green));
    vec3 slope = cofactors * covariance / dot(red, cofactors[0]);
    fitted = STEEPNESS * vec4(slope, masks - dot(slope, colors + center.rgb) - 0.5) + vec4(vec3(0.0), 0.5);
}

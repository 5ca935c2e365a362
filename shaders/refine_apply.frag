#version 330
// Cells and the coefficients of their fits go in, color in rgb of cells, mask in alpha; the same cells come out with
// the mask that the fits around them tell of their color: the definition is in app/frame/refinement/guided.py.
uniform sampler2D cells;
uniform sampler2D fits;
out vec4 applied;

const int REACH = 1;

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy), last = textureSize(cells, 0) - 1;
    vec4 coefficient = vec4(0.0);
    for (int j = -REACH; j <= REACH; j++)
        for (int i = -REACH; i <= REACH; i++)
            coefficient += texelFetch(fits, clamp(at + ivec2(i, j), ivec2(0), last), 0);
    coefficient /= float((2 * REACH + 1) * (2 * REACH + 1));
    vec3 color = texelFetch(cells, at, 0).rgb;
    applied = vec4(color, clamp(dot(coefficient.rgb, color) + coefficient.a, 0.0, 1.0));
}

#version 330
// Cells go in, color in rgb, mask in alpha; a quarter as many come out: the mean colors of 2 x 2 cells, and the mean
// masks of their neighborhood, which tell the bilateral vote where the mask is certain.
uniform sampler2D cells;
out vec4 means;

const int AROUND = 2;  // cells on all sides

void main() {
    ivec2 at = 2 * ivec2(gl_FragCoord.xy), last = textureSize(cells, 0) - 1;
    vec3 colors = vec3(0.0);
    float masks = 0.0;
    for (int j = -AROUND; j <= AROUND + 1; j++)
        for (int i = -AROUND; i <= AROUND + 1; i++) {
            vec4 cell = texelFetch(cells, clamp(at + ivec2(i, j), ivec2(0), last), 0);
            bool inside = (i == 0 || i == 1) && (j == 0 || j == 1);
            masks += cell.a;
            if (inside) colors += cell.rgb;
        }
    means = vec4(colors / 4.0, masks / float((2 * AROUND + 2) * (2 * AROUND + 2)));
}

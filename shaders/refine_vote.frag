#version 330
// Cells go in, colour in rgb, mask in alpha; the same come out with the mask that cells of like colour around them have:
// the definition is in app/frame/guided.py.
uniform sampler2D cells;
out vec4 voted;

const int REACH = 2, STRIDE = 4;
const float ALIKE = 0.03, UNSURE = 0.001;

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy), last = textureSize(cells, 0) - 1;
    vec4 centre = texelFetch(cells, at, 0);
    float weights = 0.0, masks = 0.0;
    for (int j = -REACH; j <= REACH; j++)
        for (int i = abs(j) - REACH; i <= REACH - abs(j); i++) {
            vec4 cell = texelFetch(cells, clamp(at + STRIDE * ivec2(i, j), ivec2(0), last), 0);
            vec3 apart = cell.rgb - centre.rgb;
            float sure = 2.0 * cell.a - 1.0;
            sure *= sure;
            float weight = exp(dot(apart, apart) / (-2.0 * ALIKE * ALIKE)) * (sure * sure + UNSURE);
            weights += weight, masks += weight * cell.a;
        }
    masks /= weights;
    float decided = 2.0 * masks - 1.0;
    voted = vec4(centre.rgb, mix(centre.a, masks, decided * decided));
}

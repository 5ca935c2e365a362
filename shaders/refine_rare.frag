#version 330
// The means of neighborhoods go in, color in rgb, mask in alpha; the same come out with, of background that the mask
// is certain of, how rare its color is there: 2 * floor(1023 * rarity) is added to alpha. The definition is in
// app/frame/refinement/guided.py.
uniform sampler2D means;
out vec4 known;

const int REACH = 2, STRIDE = 3;
const float ALIKE = 0.04, CERTAIN = 0.2, FEW = 0.035;

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy), last = textureSize(means, 0) - 1;
    vec4 center = texelFetch(means, at, 0);
    float mask = clamp(center.a, 0.0, 1.0), alike = 0.0;
    int reach = mask < CERTAIN ? REACH : -1;
    for (int j = -reach; j <= reach; j++)
        for (int i = -reach; i <= reach; i++) {
            vec4 cell = texelFetch(means, clamp(at + STRIDE * ivec2(i, j), ivec2(0), last), 0);
            vec3 apart = cell.rgb - center.rgb;
            float sure = 2.0 * cell.a - 1.0, weight = sure * sure * sure * sure * (1.0 - cell.a);
            if (i != 0 || j != 0) alike += weight * exp(dot(apart, apart) / (-2.0 * ALIKE * ALIKE));
        }
    float rarity = reach < 0 ? 0.0 : FEW / (FEW + alike);
    known = vec4(center.rgb, mask + 2.0 * floor(1023.0 * rarity));
}

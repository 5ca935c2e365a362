#version 330
// Cells go in, color in rgb, mask in alpha, and what is known of neighborhoods (refine_rare.frag); the same cells come
// out with the mask of similar colors around them: the definition is in app/frame/refinement/guided.py.
uniform sampler2D cells;
uniform sampler2D known;
out vec4 voted;

const int REACH = 2, STRIDE = 3;
const float ALIKE = 0.04, NOVEL = 0.015, COMMON = 0.005, RARE = 0.02, UNSURE = 0.001, OWN = 0.3;

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy), last = textureSize(known, 0) - 1;
    vec4 center = texelFetch(cells, at, 0);
    float around = mod(texelFetch(known, at / 2, 0).a, 2.0);
    float doubt = 1.0 - smoothstep(0.7, 0.95, abs(2.0 * around - 1.0));
    int reach = doubt > 0.0 ? REACH : -1;  // few cells are uncertain; the others keep their mask
    float persons = 0.0, votes = 0.0, alike = 0.0, rare = 0.0, backgrounds = 0.02;
    for (int j = -reach; j <= reach; j++)
        for (int i = -reach; i <= reach; i++) {
            vec4 cell = texelFetch(known, clamp(at / 2 + STRIDE * ivec2(i, j), ivec2(0), last), 0);
            vec3 apart = cell.rgb - center.rgb;
            float mask = mod(cell.a, 2.0), sure = 2.0 * mask - 1.0, weight = sure * sure * sure * sure;
            persons += weight * max(sure, 0.0);
            backgrounds += sure < 0.0 ? weight : 0.0;
            rare += weight * floor(0.5 * cell.a) / 1023.0;
            weight *= exp(dot(apart, apart) / (-2.0 * ALIKE * ALIKE));
            votes += weight, alike += weight * mask;
        }
    float trust = 1.0 - smoothstep(COMMON, RARE, rare / backgrounds);
    float novel = NOVEL * persons * trust, own = mix(OWN, UNSURE, trust);
    float vote = (alike + novel + own * center.a) / (votes + novel + own), decided = 2.0 * vote - 1.0;
    voted = vec4(center.rgb, mix(center.a, vote, doubt * decided * decided));
}

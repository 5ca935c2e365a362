#version 330
// Cells go in, color in rgb, mask in alpha; how far the person's color around each cell is apart from that of what is
// behind comes out: the definition is in app/frame/drawing/foreground.py.
uniform sampler2D cells;
out vec4 apart;

const float LEAST = 0.0004, TINY = 1e-9;

void main() {
    ivec2 at = ivec2(gl_FragCoord.xy), last = textureSize(cells, 0) - 1;
    vec4 person = vec4(0.0), behind = vec4(0.0);
    for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++) {
            vec4 cell = texelFetch(cells, clamp(at + ivec2(i, j), ivec2(0), last), 0);
            vec2 weights = vec2(cell.a, 1.0 - cell.a) * vec2(cell.a, 1.0 - cell.a);
            weights *= weights * float((2 - abs(i)) * (2 - abs(j))) / 16.0;
            person += weights.x * vec4(cell.rgb, 1.0);
            behind += weights.y * vec4(cell.rgb, 1.0);
        }
    float both = person.a * behind.a;
    vec3 difference = person.rgb / (person.a + TINY) - behind.rgb / (behind.a + TINY);
    apart = vec4(both / (both + LEAST) * difference, 0.0);
}

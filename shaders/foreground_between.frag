#version 330
// Cells go in, the same interpolated bilinearly comes out: the definition is in app/frame/drawing/foreground.py.
uniform sampler2D cells;
uniform float cells_per_step;
out vec4 between;

void main() {
    between = textureLod(cells, gl_FragCoord.xy * cells_per_step / vec2(textureSize(cells, 0)), 0.0);
}

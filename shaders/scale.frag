#version 330
// A picture goes in, the same comes out in another size, interpolated bilinearly.
uniform sampler2D picture;
uniform vec2 pixels_per_pixel;
out vec4 scaled;

void main() {
    scaled = textureLod(picture, gl_FragCoord.xy * pixels_per_pixel / vec2(textureSize(picture, 0)), 0.0);
}

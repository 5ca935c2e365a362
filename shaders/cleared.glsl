// A color and its transparency go in; out comes what premultiplied alpha of 8 bits keeps of them, not premultiplied:
// black where nothing is seen, and a few colors where little is.
vec4 cleared(vec3 color, float alpha) {
    float steps = floor(255.0 * clamp(alpha, 0.0, 1.0) + 0.5);
    return vec4(floor(clamp(color, 0.0, 1.0) * steps + 0.5) / max(steps, 1.0), steps / 255.0);
}

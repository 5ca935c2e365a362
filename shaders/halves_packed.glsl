// The same by the GPU's own conversion, where half_packing.py has found that it rounds to the nearest, ties to even.
uvec2 pack_halves(vec4 v) {
    v = mix(clamp(v, -65504.0, 65504.0), v, isnan(v));  // clamp() may make a number of what is none
    return uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw));
}

// conv+hswish
layout(binding = 0) uniform samplerBuffer weights;
layout(binding = 1) uniform samplerBuffer in0_texels;
#define in0(i) texelFetch(in0_texels, i)
layout(std430, binding = 0) writeonly buffer Out0 { vec4 out0[]; };

void main() {
    int thread = int(gl_LocalInvocationIndex);
    int x0 = int(gl_GlobalInvocationID.x);
    int y0 = int(gl_GlobalInvocationID.y);
    int z0 = int(gl_WorkGroupID.z);
    int i0 = (y0 + 0) * 8 + x0;
    vec4 a0_0_0 = WEIGHT(0 + z0);
    {
        vec4 v1 = READ(in0, i0);
        a0_0_0 += v1.x * WEIGHT(2 + (((0) * 1 + 0) * 2 + z0) * 4 + 0) + v1.y * WEIGHT(2 + (((0) * 1 + 0) * 2 + z0) * 4 + 1) + v1.z * WEIGHT(2 + (((0) * 1 + 0) * 2 + z0) * 4 + 2);
    }
    vec4 a1_0_0;
    {
        a1_0_0 = hard_swish(a0_0_0);
        WRITE(out0, (z0) * 48 + i0, keep(a1_0_0, 5 - 4 * (z0)));
    }
}

// conv+relu
layout(binding = 0) uniform samplerBuffer weights;
layout(binding = 1) uniform samplerBuffer in0_texels;
#define in0(i) texelFetch(in0_texels, i)
layout(std430, binding = 0) writeonly buffer Out0 { vec4 out0[]; };

void main() {
    int thread = int(gl_LocalInvocationIndex);
    int x0 = int(gl_GlobalInvocationID.x);
    int y0 = int(gl_GlobalInvocationID.y);
    int z0 = int(gl_WorkGroupID.z);
    int i0 = (y0 + 0) * 8 + x0;
    vec4 a0_0_0 = WEIGHT(0 + z0);
    for (int s = 0; s < 2; ++s) {
        vec4 v1 = READ(in0, (s) * 48 + i0);
        a0_0_0 += v1.x * WEIGHT(3 + (((s) * 1 + 0) * 3 + z0) * 4 + 0) + v1.y * WEIGHT(3 + (((s) * 1 + 0) * 3 + z0) * 4 + 1) + v1.z * WEIGHT(3 + (((s) * 1 + 0) * 3 + z0) * 4 + 2) + v1.w * WEIGHT(3 + (((s) * 1 + 0) * 3 + z0) * 4 + 3);
    }
    vec4 a1_0_0;
    {
        a1_0_0 = max(a0_0_0, 0.0);
        WRITE(out0, (z0) * 48 + i0, keep(a1_0_0, 9 - 4 * (z0)));
    }
}

// dw+relu
layout(binding = 0) uniform samplerBuffer weights;
layout(binding = 1) uniform samplerBuffer in0_texels;
#define in0(i) texelFetch(in0_texels, i)
layout(std430, binding = 0) writeonly buffer Out0 { vec4 out0[]; };
layout(std430, binding = 1) writeonly buffer Out1 { vec4 out1[]; };
shared vec4 sums0[48];

void main() {
    int thread = int(gl_LocalInvocationIndex);
    int x0 = int(gl_GlobalInvocationID.x);
    int y0 = int(gl_GlobalInvocationID.y);
    int z0 = int(gl_WorkGroupID.z);
    int p0 = clamp(y0 * 1 + -1, 0, 5);
    int r10 = p0 * 8;
    int p5 = clamp(x0 * 1 + -1, 0, 7);
    bool k1 = uint(y0 * 1 + -1) < 6u;
    bool k6 = uint(x0 * 1 + -1) < 8u;
    int p7 = x0 * 1 + 0;
    int p8 = clamp(x0 * 1 + 1, 0, 7);
    bool k9 = uint(x0 * 1 + 1) < 8u;
    int p2 = y0 * 1 + 0;
    int r11 = p2 * 8;
    int p3 = clamp(y0 * 1 + 1, 0, 5);
    int r12 = p3 * 8;
    bool k4 = uint(y0 * 1 + 1) < 6u;
    int i13 = (y0 + 0) * 8 + x0;
    {
        vec4 d1 = WEIGHT(27 + z0);
        vec4 v2 = mix(vec4(0.0), READ(in0, (z0) * 48 + r10 + p5), bvec4(k1 && k6));
        d1 += v2 * WEIGHT(0 + (z0) * 9 + 0);
        vec4 v3 = mix(vec4(0.0), READ(in0, (z0) * 48 + r10 + p7), bvec4(k1));
        d1 += v3 * WEIGHT(0 + (z0) * 9 + 1);
        vec4 v4 = mix(vec4(0.0), READ(in0, (z0) * 48 + r10 + p8), bvec4(k1 && k9));
        d1 += v4 * WEIGHT(0 + (z0) * 9 + 2);
        vec4 v5 = mix(vec4(0.0), READ(in0, (z0) * 48 + r11 + p5), bvec4(k6));
        d1 += v5 * WEIGHT(0 + (z0) * 9 + 3);
        vec4 v6 = READ(in0, (z0) * 48 + r11 + p7);
        d1 += v6 * WEIGHT(0 + (z0) * 9 + 4);
        vec4 v7 = mix(vec4(0.0), READ(in0, (z0) * 48 + r11 + p8), bvec4(k9));
        d1 += v7 * WEIGHT(0 + (z0) * 9 + 5);
        vec4 v8 = mix(vec4(0.0), READ(in0, (z0) * 48 + r12 + p5), bvec4(k4 && k6));
        d1 += v8 * WEIGHT(0 + (z0) * 9 + 6);
        vec4 v9 = mix(vec4(0.0), READ(in0, (z0) * 48 + r12 + p7), bvec4(k4));
        d1 += v9 * WEIGHT(0 + (z0) * 9 + 7);
        vec4 v10 = mix(vec4(0.0), READ(in0, (z0) * 48 + r12 + p8), bvec4(k4 && k9));
        d1 += v10 * WEIGHT(0 + (z0) * 9 + 8);
        vec4 t11 = max(d1, 0.0);
        WRITE(out0, (z0) * 48 + i13, keep(t11, 9 - 4 * (z0)));
        sums0[thread + 0] = keep(t11, 9 - 4 * (z0));
    }
    SYNC();
    if (thread < 4) {
        int t = thread;
        int at = t / 4 * 48 + t % 4;
        vec4 sum = sums0[at];
        for (int k = 1; k < 12; ++k) {
            sum += sums0[at + k * 4];
        }
        sums0[at] = sum;
    }
    SYNC();
    if (thread < 1) {
        int t = thread;
        vec4 sum = sums0[t * 48];
        for (int k = 1; k < 4; ++k) {
            sum += sums0[t * 48 + k];
        }
        int at = (z0 + t) * 1 + int(gl_WorkGroupID.y) * 1 + int(gl_WorkGroupID.x);
        WRITE(out1, at, sum * 0.020833333333333332);
    }
}

// mean+conv+relu+conv+sigmoid+mul+conv+add
layout(binding = 0) uniform samplerBuffer weights;
layout(binding = 1) uniform samplerBuffer in0_texels;
#define in0(i) texelFetch(in0_texels, i)
layout(binding = 2) uniform samplerBuffer in1_texels;
#define in1(i) texelFetch(in1_texels, i)
layout(binding = 3) uniform samplerBuffer in2_texels;
#define in2(i) texelFetch(in2_texels, i)
layout(std430, binding = 0) writeonly buffer Out0 { vec4 out0[]; };
shared vec4 g0[3];
shared vec4 g1[1];
shared vec4 g2[1];
shared vec4 g3[3];
shared vec4 g4[3];
shared vec4 partial_sums[48];

void main() {
    int thread = int(gl_LocalInvocationIndex);
    int x0 = int(gl_GlobalInvocationID.x);
    int y0 = int(gl_GlobalInvocationID.y);
    int z0 = int(gl_WorkGroupID.z);
    if (thread < 3) {
        int o = thread;
        g0[o] = READ(in2, o);
    }
    SYNC();
    if (thread < 3) {
        int o = thread % 1;
        int part = thread / 1;
        vec4 sum = vec4(0.0);
        for (int k = 0; k < 1; ++k) {
            vec4 v = g0[k * 3 + part];
            sum += v.x * WEIGHT(0 + (4 * k * 3 + part) * 1 + o + 0) + v.y * WEIGHT(0 + (4 * k * 3 + part) * 1 + o + 3) + v.z * WEIGHT(0 + (4 * k * 3 + part) * 1 + o + 6) + v.w * WEIGHT(0 + (4 * k * 3 + part) * 1 + o + 9);
        }
        partial_sums[thread] = sum;
    }
    SYNC();
    if (thread < 1) {
        int o = thread;
        vec4 sum = WEIGHT(12 + o);
        for (int part = 0; part < 3; ++part) {
            sum += partial_sums[part * 1 + o];
        }
        g1[o] = sum;
    }
    if (thread < 1) {
        int o = thread;
        g2[o] = max(g1[o], 0.0);
    }
    SYNC();
    if (thread < 3) {
        int o = thread;
        vec4 sum = WEIGHT(25 + o);
        for (int k = 0; k < 1; ++k) {
            vec4 v = g2[k];
            sum += v.x * WEIGHT(13 + 4 * k * 3 + o + 0) + v.y * WEIGHT(13 + 4 * k * 3 + o + 3) + v.z * WEIGHT(13 + 4 * k * 3 + o + 6) + v.w * WEIGHT(13 + 4 * k * 3 + o + 9);
        }
        g3[o] = sum;
    }
    if (thread < 3) {
        int o = thread;
        g4[o] = logistic(g3[o]);
    }
    SYNC();
    int i0 = (y0 + 0) * 8 + x0;
    vec4 a0_0_0 = WEIGHT(28 + z0);
    for (int s = 0; s < 3; ++s) {
        vec4 v1 = READ(in0, (s) * 48 + i0);
        vec4 t2 = keep(v1 * g4[s], 9 - 4 * (s));
        a0_0_0 += t2.x * WEIGHT(30 + (((s) * 1 + 0) * 2 + z0) * 4 + 0) + t2.y * WEIGHT(30 + (((s) * 1 + 0) * 2 + z0) * 4 + 1) + t2.z * WEIGHT(30 + (((s) * 1 + 0) * 2 + z0) * 4 + 2) + t2.w * WEIGHT(30 + (((s) * 1 + 0) * 2 + z0) * 4 + 3);
    }
    vec4 a1_0_0;
    {
        vec4 v3 = READ(in1, (z0) * 48 + i0);
        a1_0_0 = a0_0_0 + v3;
        WRITE(out0, (z0) * 48 + i0, keep(a1_0_0, 5 - 4 * (z0)));
    }
}

// conv
layout(binding = 0) uniform samplerBuffer weights;
layout(binding = 1) uniform samplerBuffer in0_texels;
#define in0(i) texelFetch(in0_texels, i)
layout(std430, binding = 0) writeonly buffer Out0 { vec4 out0[]; };

void main() {
    int thread = int(gl_LocalInvocationIndex);
    int x0 = int(gl_GlobalInvocationID.x);
    int y0 = int(gl_GlobalInvocationID.y);
    int z0 = int(gl_WorkGroupID.z);
    int i0 = (y0 + 0) * 8 + x0;
    vec4 a0_0_0 = WEIGHT(0 + z0);
    for (int s = 0; s < 2; ++s) {
        vec4 v1 = READ(in0, (s) * 48 + i0);
        a0_0_0 += v1.x * WEIGHT(1 + (((s) * 1 + 0) * 1 + z0) * 4 + 0) + v1.y * WEIGHT(1 + (((s) * 1 + 0) * 1 + z0) * 4 + 1) + v1.z * WEIGHT(1 + (((s) * 1 + 0) * 1 + z0) * 4 + 2) + v1.w * WEIGHT(1 + (((s) * 1 + 0) * 1 + z0) * 4 + 3);
    }
    {
        WRITE(out0, (z0) * 48 + i0, a0_0_0);
    }
}

// up+sigmoid
layout(binding = 0) uniform samplerBuffer weights;
layout(binding = 1) uniform samplerBuffer in0_texels;
#define in0(i) texelFetch(in0_texels, i)
layout(std430, binding = 0) writeonly buffer Out0 { vec4 out0[]; };

void main() {
    int thread = int(gl_LocalInvocationIndex);
    int x0 = int(gl_GlobalInvocationID.x);
    int y0 = int(gl_GlobalInvocationID.y);
    int z0 = int(gl_WorkGroupID.z);
    float f5 = (float(y0 + 0) + 0.5) * 0.5 - 0.5;
    int p6 = int(floor(f5));
    int p8 = clamp(p6 + 0, 0, 5);
    int r10 = p8 * 8;
    float f0 = (float(x0) + 0.5) * 0.5 - 0.5;
    int p1 = int(floor(f0));
    int p3 = clamp(p1 + 0, 0, 7);
    int p4 = clamp(p1 + 1, 0, 7);
    float f2 = f0 - float(p1);
    int p9 = clamp(p6 + 1, 0, 5);
    int r11 = p9 * 8;
    float f7 = f5 - float(p6);
    int i12 = (y0 + 0) * 16 + x0;
    {
        vec4 v1 = READ(in0, (z0) * 48 + r10 + p3);
        vec4 v2 = READ(in0, (z0) * 48 + r10 + p4);
        vec4 h3 = v1 + (v2 - v1) * f2;
        vec4 v4 = READ(in0, (z0) * 48 + r11 + p3);
        vec4 v5 = READ(in0, (z0) * 48 + r11 + p4);
        vec4 h6 = v4 + (v5 - v4) * f2;
        vec4 t7 = h3 + (h6 - h3) * f7;
        vec4 t8 = logistic(t7);
        WRITE(out0, (z0) * 192 + i12, t8);
    }
}

// depth_to_space
layout(binding = 0) uniform samplerBuffer weights;
layout(binding = 1) uniform samplerBuffer in0_texels;
#define in0(i) texelFetch(in0_texels, i)
layout(std430, binding = 0) writeonly buffer Out0 { vec2 out0[]; };

void main() {
    int thread = int(gl_LocalInvocationIndex);
    int x0 = int(gl_GlobalInvocationID.x);
    int y0 = int(gl_GlobalInvocationID.y);
    vec4 a0_0_0;
    int i0 = (y0 + 0) * 16 + x0;
    {
        vec4 v1 = READ(in0, i0);
        a0_0_0 = v1;
    }
    {
        WRITE(out0, (((y0 + 0) * 2 + 0) * 16 + x0) * 1 + 0, vec2(a0_0_0.x, a0_0_0.y));
        WRITE(out0, (((y0 + 0) * 2 + 1) * 16 + x0) * 1 + 0, vec2(a0_0_0.z, a0_0_0.w));
    }
}

"""Code of shaders computes for each pixel what the shader says, whichever ways others of its vector go."""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.markers import one_in
from tests.helpers.native import target_of
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.targets.llvm import compiler
from texelflow.gpu_delegate.targets.llvm.compiler import assembly
from texelflow.gpu_delegate.targets.llvm.machine import AVX2, AVX512, NEON, CpuTarget
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool
from texelflow.gpu_delegate.targets.llvm.shader_images import ImageForm
from texelflow.gpu_delegate.targets.llvm.shader_steps import (
    ImageWords,
    ReadShader,
    ShaderKernel,
    UniformNumbers,
    written_shader,
)
from texelflow.gpu_delegate.targets.llvm.work import StepAddresses, StepRange, WorkTable

pytestmark = pytest.mark.skipif(bool(compiler.available()), reason="there is no code for this CPU")

Floats = npt.NDArray[np.float32]
WIDTH, HEIGHT = 37, 5
WIDTHS = (4, 8, 16)
LANES = pytest.mark.parametrize("lanes", WIDTHS)


def words_of(pixels: npt.NDArray[np.generic], form: ImageForm) -> ImageWords:
    """Of (planes, H, W) of floats, or (H, W, C) of codes."""
    if form.in_planes:
        return ImageWords(pixels.ctypes.data, pixels.strides[1], pixels.strides[0], pixels.shape[2], pixels.shape[1])
    return ImageWords(pixels.ctypes.data, pixels.strides[0], 0, pixels.shape[1], pixels.shape[0])


def drawn(
    text: str,
    lanes: int,
    images: Mapping[str, tuple[npt.NDArray[np.generic], ImageForm]] | None = None,
    uniforms: Mapping[str, UniformNumbers] | None = None,
    size: tuple[int, int] = (WIDTH, HEIGHT),
) -> Floats:
    """What a shader puts out, (H, W, 4)."""
    form, target, held = ImageForm("f32", 4, in_planes=True), target_of(lanes), images or {}
    out = np.zeros((4, size[1], max(size[0], 32)), np.float32)
    shader = ReadShader(text)
    kernel = ShaderKernel(shader, {name: each for name, (_, each) in held.items()}, form, target, "")
    output = ImageWords(out.ctypes.data, out.strides[1], out.strides[0], *size)
    sources = {name: words_of(*each) for name, each in held.items()}
    words = np.frombuffer(kernel.words(output, sources, uniforms or {}), np.uint8).copy()
    table = WorkTable([((StepRange(0, 0, size[1], 0, 1),),)], [StepAddresses(kernel.address, words.ctypes.data, 0)])
    WorkerPool(target, 1).run(table)
    return out[:, :, : size[0]].transpose(1, 2, 0)


Y, X = np.mgrid[:HEIGHT, :WIDTH]
F: Floats = (X / 6 - 3).astype(np.float32)
T: Floats = np.clip((F + 1) / 2, 0, 1)
Defined = Callable[[], npt.ArrayLike]
CASES: Mapping[str, tuple[str, Defined]] = {
    "coordinates": ("o.rg = gl_FragCoord.xy; o.b = float(at.x % 7);", lambda: (X + 0.5, Y + 0.5, X % 7)),
    "whole numbers": (
        "int n = at.x * 3 - 20; o.rgb = vec3(n / 7, n % 7, (n ^ 5) & (n >> 1) | (1 << at.y));",
        lambda: (np.trunc((X * 3 - 20) / 7), np.fmod(X * 3 - 20, 7),
                 ((X * 3 - 20) ^ 5) & ((X * 3 - 20) >> 1) | (1 << Y)),
    ),
    "a varying branch": (
        "float a = 1.0; if (at.x % 3 == 1) { a = 5.0; if (at.y > 2) a += 2.0; } else a -= 3.0; o.r = a;",
        lambda: (np.where(X % 3 == 1, np.where(Y > 2, 7, 5), -2),),
    ),
    "a branch by row": ("int n; if (at.y > 1) n = 4; else n = at.y; o.r = float(n);", lambda: (np.where(Y > 1, 4, Y),)),
    "a varying loop": (
        "int most = at.x % 5; float s = 0.0; for (int i = -1; i <= most; i++) s += float(i * at.y); o.r = s;",
        lambda: (Y * ((X % 5) * (X % 5 + 1) // 2 - 1),),
    ),
    "loops in loops": (
        "float s = 0.0; for (int j = 0; j < 40; j++) for (int i = 0; i < at.x; i++) if (i % 2 == 0) s += 1.0; o.r = s;",
        lambda: (40 * ((X + 1) // 2),),
    ),
    "a loop that counts down": (
        "int n = at.x; ivec3 c = ivec3(0); for (int bit = 3; bit >= 0; bit--, n >>= 1) c |= (ivec3(n) & 1) << bit;"
        " o.rgb = vec3(c);",
        lambda: (sum(((X >> k) & 1) << (3 - k) for k in range(4)),) * 3,
    ),
    "an early return": ("o.r = early(at.x, at.y);", lambda: (np.where(X < 9, 1, np.where(Y == 3, 2, X)),)),
    "what a function gives out": (
        "ivec2 whole; float part; halve(at.x, whole.y, part); o.rg = vec2(float(whole.y), part);",
        lambda: (X // 2, X / 2 - X // 2),
    ),
    "an int that becomes varying": (
        "int n = 1; for (int i = 0; i < 3; i++) n = n * 2 + (i == 1 ? at.x : 0); o.r = float(n);",
        lambda: ((4 + X) * 2,),
    ),
    "fields and items": (
        "vec4 v = vec4(1.0, 2.0, 3.0, 4.0); v.zx = v.xy + float(at.x); Pair p = Pair(ivec2(at.y, 7), v.w);"
        " o = vec4(v.x, v.z, v[at.x % 4], float(p.both.y) + p.one);",
        lambda: (2 + X, 1 + X, np.choose(X % 4, [2 + X, 2 + 0 * X, 1 + X, 4 + 0 * X]), 11),
    ),
    "matrices": (
        "mat3 m = mat3(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0); vec3 v = vec3(at, 1.0);"
        " o.rgb = m * v + cross(v, m[1]);",
        lambda: (X + 4 * Y + 7 + 6 * Y - 5, 2 * X + 5 * Y + 8 + 4 - 6 * X, 3 * X + 6 * Y + 10 + 5 * X - 4 * Y),
    ),
    "functions": (
        "float x = float(at.x) / 6.0 - 3.0; o = vec4(floor(x), fract(x), mod(x, 2.0), smoothstep(-1.0, 1.0, x));",
        lambda: (np.floor(F), F - np.floor(F), np.mod(F, 2), T * T * (3 - 2 * T)),
    ),
    "more functions": (
        "float x = float(at.x) / 6.0 - 3.0;"
        " o = vec4(exp(x), pow(abs(x), 1.7), mix(1.0, x, 0.25), clamp(x, -1.0, 2.0));",
        lambda: (np.exp(F), np.abs(F) ** 1.7, 1 + 0.25 * (F - 1), np.clip(F, -1, 2)),
    ),
    "lengths": (
        "vec2 v = vec2(at) - 3.0; o.rgb = vec3(length(v), distance(v, vec2(1.0)), dot(v, vec2(2.0, -1.0)));",
        lambda: (np.hypot(X - 3, Y - 3), np.hypot(X - 4, Y - 4), 2 * (X - 3) - (Y - 3)),
    ),
    "truths": (
        "bool a = at.x > 4, b = at.y < 2; o.rgb = vec3(float(a && !b), float(a || b), float(a ^^ b));",
        lambda: ((X > 4) & ~(Y < 2), (X > 4) | (Y < 2), (X > 4) ^ (Y < 2)),
    ),
    "arrays": (
        "float s = 0.0; for (int i = 0; i < 3; i++) s += float(TABLE[i] * PAIRS[i].y); o.r = s + weights[at.x % 2];",
        lambda: (4 * 2 + 5 * 4 + 6 * 6 + np.where(X % 2, 0.75, 0.25),),
    ),
}  # fmt: skip
HEAD = """
#version 330
struct Pair { ivec2 both; float one; };
const int TABLE[3] = int[](4, 5, 6);
const ivec2 PAIRS[3] = ivec2[](ivec2(1, 2), ivec2(3, 4), ivec2(5, 6));
uniform float weights[2];
out vec4 o;
float early(int x, int y) {
    if (x < 9) return 1.0;
    if (y == 3) { float two = 2.0; return two; }
    return float(x);
}
void halve(int i, out int whole, out float part) {
    whole = i / 2;
    part = float(i) / 2.0 - float(whole);
}
"""


@one_in(2, ("name", "lanes"), product(CASES, WIDTHS))
def test_shaders_compute_what_they_say(name: str, lanes: int) -> None:
    body, defined = CASES[name]
    text = f"{HEAD} void main() {{ ivec2 at = ivec2(gl_FragCoord.xy); o = vec4(0.0); {body} }}"
    found = drawn(text, lanes, uniforms={"weights": (0.25, 0.75)})
    for channel, expected in enumerate(defined()):  # type: ignore[arg-type]
        np.testing.assert_allclose(found[..., channel], np.broadcast_to(expected, X.shape), rtol=2e-6, atol=2e-6)


FETCH = "uniform sampler2D picture; out vec4 o; void main() {{ ivec2 at = ivec2(gl_FragCoord.xy); o = {}; }}"
FORMS = {
    "bytes": (np.uint8, ImageForm("u8", 4)),
    "pairs": (np.uint8, ImageForm("u8", 2)),
    "codes": (np.uint8, ImageForm("u8", 1)),
    "words": (np.uint16, ImageForm("u16", 1)),
    "pairs of words": (np.uint16, ImageForm("u16", 2)),
    "floats": (np.float32, ImageForm("f32", 4, in_planes=True)),
    "masks": (np.float32, ImageForm("f32", 1, in_planes=True)),
}
PLACES: Mapping[str, tuple[str, Callable[[], tuple[npt.ArrayLike, npt.ArrayLike]]]] = {
    "each": ("at", lambda: (X, Y)),
    "mirrored": ("ivec2(40 - at.x, at.y)", lambda: (40 - X, Y)),
    "near": ("at + ivec2(-3, 2)", lambda: (X - 3, Y + 2)),
    "halved": ("ivec2(at.x / 2, at.y)", lambda: (X // 2, Y)),
    "doubled": ("ivec2(at.x * 2, at.y * 2)", lambda: (X * 2, Y * 2)),
    "transposed": ("at.yx", lambda: (Y, X)),
    "scattered": ("ivec2(at.x * 29 % 41, at.x % 9)", lambda: (X * 29 % 41, X % 9)),
    "one": ("ivec2(5, at.y)", lambda: (5 + 0 * X, Y)),
}


def source_of(kind: type, form: ImageForm, size: tuple[int, int]) -> tuple[npt.NDArray[np.generic], Floats]:
    """A picture of (width, height) in memory, with what shaders read of it, (H, W, 4)."""
    random, (width, height), room = np.random.default_rng(1), size, max(size[0], 32)
    pixels: npt.NDArray[Any]
    if form.in_planes:
        values = random.uniform(-2, 2, (form.channels, height, room)).astype(np.float32)
        pixels, read = values[:, :, :width], values[:, :, :width].transpose(1, 2, 0)
    else:
        codes: npt.NDArray[Any] = random.integers(0, np.iinfo(kind).max + 1, (height, room, form.channels)).astype(kind)
        pixels = codes[:, :width]
        read = pixels.astype(np.float32) / np.float32(np.iinfo(kind).max)
    filled = np.zeros((height, width, 4), np.float32)
    filled[..., 3] = 1
    filled[..., : form.channels] = read
    return pixels, filled


@one_in(2, ("form", "lanes"), product(FORMS, WIDTHS))
@pytest.mark.parametrize("size", [(41, 9), (7, 3)], ids=str)
def test_pixels_are_read_wherever_they_lie(form: str, size: tuple[int, int], lanes: int) -> None:
    pixels, expected = source_of(*FORMS[form], size)
    for name, (place, defined) in PLACES.items():
        found = drawn(FETCH.format(f"texelFetch(picture, {place}, 0)"), lanes, {"picture": (pixels, FORMS[form][1])})
        x, y = (np.clip(each, 0, most - 1) for each, most in zip(defined(), size, strict=True))
        np.testing.assert_allclose(found, expected[y, x], atol=1e-6, err_msg=name)


@LANES
def test_pictures_are_interpolated_between_pixels(lanes: int) -> None:
    pixels, values = source_of(np.float32, FORMS["floats"][1], (12, 9))
    found = drawn(
        FETCH.format("textureLod(picture, gl_FragCoord.xy * 0.3 / vec2(textureSize(picture, 0)), 0.0)"),
        lanes, {"picture": (pixels, FORMS["floats"][1])},
    )  # fmt: skip
    x, y = (X + 0.5) * 0.3 - 0.5, (Y + 0.5) * 0.3 - 0.5
    total = np.zeros((HEIGHT, WIDTH, 4))
    for dy in (0, 1):
        for dx in (0, 1):
            column, row = (np.floor(each).astype(int) + by for each, by in ((x, dx), (y, dy)))
            weight = (1 - np.abs(x - column)) * (1 - np.abs(y - row))
            total += weight[..., None] * values[np.clip(row, 0, 8), np.clip(column, 0, 11)]
    np.testing.assert_allclose(found, total, atol=1e-5)


@LANES
@pytest.mark.parametrize("stride", [1, 4])
def test_texels_of_a_buffer_are_read(stride: int, lanes: int) -> None:
    values = np.random.default_rng(2).normal(0, 1, (1, 200 + 32, stride)).astype(np.float32)
    text = "uniform samplerBuffer texels; out vec4 o; void main() { ivec2 at = ivec2(gl_FragCoord.xy);"
    text += " o = texelFetch(texels, at.x * 3 + at.y * 50); }"
    found = drawn(text, lanes, {"texels": (values[:, :200], ImageForm("f32", stride, is_row=True))})
    place = np.clip(X * 3 + Y * 50, 0, 199)
    np.testing.assert_array_equal(found[..., :stride], values[0, place])


@LANES
@pytest.mark.parametrize("size", [(1, 1), (3, 2), (15, 2), (16, 1), (17, 3), (33, 2)], ids=str)
def test_all_pixels_of_any_width_are_drawn_and_no_others(size: tuple[int, int], lanes: int) -> None:
    text = "out vec4 o; void main() { o = vec4(gl_FragCoord.x, gl_FragCoord.y, 2.0, 3.0); }"
    found = drawn(text, lanes, size=size)
    y, x = np.mgrid[: size[1], : size[0]]
    np.testing.assert_array_equal(found, np.stack([x + 0.5, y + 0.5, 2 + 0 * x, 3 + 0 * x], -1))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("o = unknown(at);", "unknown"),
        ("for (int i = 0; i != 4; i++) o.r += 1.0;", "loop"),
        ("for (int i = at.x; i < 90; i += 2) o.r += 1.0;", "of each pixel's own"),
        ("for (int i = at.y; i > 0; i--) o.r += 1.0;", "counts down"),
        ("o = texture(at);", "texture"),
        ("o.q1 = 3.0;", "q1"),
        ("vec2 v = vec3(1.0); o.rg = v;", "vec3 to a vec2"),
        ("o.r = missing;", "missing"),
    ],
)
def test_what_code_cannot_say_is_refused(body: str, why: str) -> None:
    with pytest.raises(UnsupportedError, match=why):
        drawn(f"out vec4 o; void main() {{ ivec2 at = ivec2(gl_FragCoord.xy); {body} }}", 8)


@pytest.mark.parametrize("target", [AVX512, AVX2, NEON], ids=lambda target: target.name)
def test_code_is_made_for_every_kind_of_cpu(target: CpuTarget) -> None:
    shader = ReadShader(FETCH.format("texelFetch(picture, at / 2, 0)"))
    text = written_shader(shader.tree, {"picture": FORMS["codes"][1]}, ImageForm("u8", 4), target)
    assert {"avx512": "zmm", "avx2": "ymm", "neon": "v0"}[target.name] in assembly(text, target)

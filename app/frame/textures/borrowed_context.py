"""Draws in a context of somebody else's, who has set it up for drawing of their own."""

import contextlib
from collections.abc import Iterator

from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context

_TESTS = (  # and what else changes pixels on their way into a framebuffer
    opengl.BLEND, opengl.CULL_FACE, opengl.DEPTH_TEST, opengl.STENCIL_TEST, opengl.SCISSOR_TEST,
    opengl.RASTERIZER_DISCARD,
)  # fmt: skip
_BLENDING = (opengl.BLEND_SRC_RGB, opengl.BLEND_DST_RGB, opengl.BLEND_SRC_ALPHA, opengl.BLEND_DST_ALPHA)
_TESTS_BEYOND_ES = (opengl.COLOR_LOGIC_OP, opengl.FRAMEBUFFER_SRGB)
_SAMPLED_UNITS = 10  # that shaders of pictures read; those of the network read the first of these


@contextlib.contextmanager
def borrowed(context: Context) -> Iterator[None]:
    """Within it pixels are drawn as they are; behind it they are treated as before, in the framebuffer of before.

    The shader program, the vertex array, and bindings of textures, samplers and buffers are others behind it.
    """
    gl = context.gl
    tests = _TESTS if gl.is_es else (*_TESTS, *_TESTS_BEYOND_ES)
    enabled = [test for test in tests if gl.integer(test)]
    drawn, read = gl.integer(opengl.DRAW_FRAMEBUFFER_BINDING), gl.integer(opengl.READ_FRAMEBUFFER_BINDING)
    viewport, mask = gl.integers(opengl.VIEWPORT, 4), gl.integers(opengl.COLOR_WRITEMASK, 4)
    blending = [gl.integer(factor) for factor in _BLENDING]
    filled = opengl.FILL if gl.is_es else gl.integers(opengl.POLYGON_MODE, 2)[0]  # two of them in old profiles
    for test in enabled:
        gl.glDisable(test)
    gl.glColorMask(1, 1, 1, 1)
    if filled != opengl.FILL:
        gl.glPolygonMode(opengl.FRONT_AND_BACK, opengl.FILL)
    for unit in range(_SAMPLED_UNITS):
        gl.glBindSampler(unit, 0)
    try:
        yield
    finally:
        for test in enabled:
            gl.glEnable(test)
        gl.glBlendFuncSeparate(*blending)
        gl.glColorMask(*mask)
        if filled != opengl.FILL:
            gl.glPolygonMode(opengl.FRONT_AND_BACK, filled)
        gl.glBindFramebuffer(opengl.DRAW_FRAMEBUFFER, drawn)
        gl.glBindFramebuffer(opengl.READ_FRAMEBUFFER, read)
        gl.glViewport(*viewport)

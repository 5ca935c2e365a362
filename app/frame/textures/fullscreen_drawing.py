"""Compiles a fragment shader, and draws it over a whole target."""

import ctypes
from collections.abc import Mapping, Sequence

from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context, compile_program
from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue, load

from ...picture.preprocess import ImageSize
from .offscreen_target import on_opengl
from .picture_device import Target


class Drawing:
    """One fragment shader, compiled."""

    def __init__(
        self,
        context: Context,
        shader: str,
        defines: Mapping[str, ParameterValue],
        samplers: Mapping[str, int],
        label: str,
        over: bool = False,
    ) -> None:
        """`samplers` are the texture units by name; over: colors are premultiplied and laid over what is there.

        Raises DeviceError if the shader does not compile.
        """
        gl = context.gl
        stages = {opengl.VERTEX_SHADER: load("composite.vert"), opengl.FRAGMENT_SHADER: load(shader, defines)}
        self._gl, self._over = gl, over
        self._places: dict[str, int] = {}
        self._name = compile_program(context, stages, label)
        self._corners = gl.generate("VertexArrays")  # empty: the core profile requires one
        self.use()
        for sampler, unit in samplers.items():
            self.set_ints(sampler, unit)

    def set_ints(self, uniform: str, *values: int) -> None:
        """Give one or two values to a uniform of the shader in use.

        Without effect for one that the shader does not have, as in set_floats and set_array.
        """
        self._set(f"glUniform{len(values)}i", uniform, values)

    def set_floats(self, uniform: str, *values: float) -> None:
        """The same for one to four floats."""
        self._set(f"glUniform{len(values)}f", uniform, values)

    def set_array(self, uniform: str, values: Sequence[float]) -> None:
        """The same for an array of floats, from its first element on."""
        if (place := self._place(uniform)) >= 0:
            self._gl.glUniform1fv(place, len(values), (ctypes.c_float * len(values))(*values))

    def _set(self, function: str, uniform: str, values: tuple[float, ...]) -> None:
        if (place := self._place(uniform)) >= 0:
            getattr(self._gl, function)(place, *values)

    def _place(self, uniform: str) -> int:
        """Where it is set; -1 for one that the shader does not have."""
        if uniform not in self._places:  # threaded drivers flush their queue to answer
            self._places[uniform] = self._gl.glGetUniformLocation(self._name, uniform.encode())
        return self._places[uniform]

    def use(self) -> None:
        """Let uniforms be set."""
        self._gl.glUseProgram(self._name)

    def draw(self, target: Target, size: ImageSize, first_row: int = 0, first_column: int = 0) -> None:
        """Draw on (width, height) of a target, from that row and column on."""
        gl = self._gl
        gl.glBindFramebuffer(opengl.DRAW_FRAMEBUFFER, on_opengl(target).framebuffer)
        gl.glViewport(first_column, first_row, *size)
        gl.glBindVertexArray(self._corners)
        if self._over:
            gl.glEnable(opengl.BLEND)
            gl.glBlendFuncSeparate(*(opengl.ONE, opengl.ONE_MINUS_SRC_ALPHA) * 2)
        gl.glDrawArrays(opengl.TRIANGLES, 0, 3)
        if self._over:
            gl.glDisable(opengl.BLEND)

    def release(self) -> None:
        """Delete the shader."""
        self._gl.glDeleteProgram(self._name)
        self._gl.delete("VertexArrays", self._corners)

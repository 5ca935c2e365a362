"""Opens a window with the best OpenGL for a choice of backend."""

from fractions import Fraction

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl.context import DRAWING, REQUIRED
from texelflow.gpu_delegate.targets.gl.egl import Api
from texelflow.gpu_delegate.targets.gl.native_context import wanted_apis

from ..picture.picture import ImageSize
from .glfw_window import Window


def open_window(size: ImageSize, title: str, backend: str, aspect: Fraction = Fraction(1)) -> Window:
    """With OpenGL that computes, or where the network runs elsewhere or may do so, with OpenGL that draws.

    `size` is (width, height) of the pictures, `aspect` that of their pixels. Raises DeviceError.
    """
    width, height = size
    shown = (round(width * aspect), height) if aspect > 1 else (width, round(height / aspect))
    first, *others = contexts_to_try(backend)
    try:
        return Window(shown, title, *first)
    except DeviceError as error:
        for version, api in others:
            try:
                return Window(shown, title, version, api)
            except DeviceError:
                continue
        raise error


def contexts_to_try(backend: str) -> list[tuple[tuple[int, int], Api]]:
    """Versions of OpenGL with the API, best first: OpenGL ES, which computes, comes before OpenGL that only draws."""
    apis = wanted_apis()
    tries = [(DRAWING if backend == "cpu" else REQUIRED, api) for api in apis]
    return [*tries, (DRAWING, "gl")] if backend == "auto" and "gl" in apis else tries

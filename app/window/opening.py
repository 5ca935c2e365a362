"""The size of pictures and a choice of backend go in; a window comes out, with the best OpenGL for that."""

from fractions import Fraction

from texelflow.gpu_delegate.context import DRAWING, REQUIRED
from texelflow.gpu_delegate.errors import DeviceError

from ..picture.preprocess import ImageSize
from .window import Window


def open_window(size: ImageSize, title: str, backend: str, aspect: Fraction = Fraction(1)) -> Window:
    """With OpenGL that computes, or where the network runs elsewhere or may do so, with OpenGL that draws.

    `size` is (width, height) of the pictures, `aspect` that of their pixels. Raises DeviceError.
    """
    width, height = size
    shown = (round(width * aspect), height) if aspect > 1 else (width, round(height / aspect))
    if backend == "cpu":
        return Window(shown, title, DRAWING)
    try:
        return Window(shown, title, REQUIRED)
    except DeviceError:
        if backend == "gl":
            raise
        return Window(shown, title, DRAWING)

"""A fixture of what draws pictures, by OpenGL and by native code: whoever uses it is tried on both."""

from collections.abc import Iterator

import pytest

from texelflow.app.frame.textures.gl_pictures import GlPictures
from texelflow.app.frame.textures.native_pictures import NativePictures
from texelflow.app.frame.textures.picture_device import PictureDevice
from texelflow.gpu_delegate.targets.llvm import compiler

needs_code = pytest.mark.skipif(bool(compiler.available()), reason="there is no code for this CPU")


@pytest.fixture(params=[pytest.param("gl", marks=pytest.mark.gl), pytest.param("native", marks=needs_code)])
def pictures(request: pytest.FixtureRequest) -> Iterator[PictureDevice]:
    """OpenGL, then native code with two threads."""
    if request.param == "gl":
        yield GlPictures(request.getfixturevalue("context"))
    else:
        device = NativePictures(2)
        yield device
        device.release()

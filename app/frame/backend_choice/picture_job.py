"""The frame job of a network that puts out a picture: a frame in RAM to a float32 picture of its size in RAM."""

import contextlib

import numpy as np

from texelflow.gpu_delegate.model.packing import in_file_type
from texelflow.gpu_delegate.model.quantization import dequantized
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context

from ...models.model_loading import PictureModel
from ...picture.picture import Picture, PictureFormat
from ...picture.preprocess import Floats
from ..drawing.network_picture import PictureCompositor
from ..inference.backends import Backend
from ..inference.cpu_path import picture_of_output
from ..inference.gl_path import GlPath
from ..textures.gl_pictures import GlPictures
from ..textures.offscreen_target import OffscreenTarget


class GlPictureJob:
    """The frame job of a network that puts out a picture, on the GPU; only the picture at the end is read back."""

    backend: Backend = "gl"
    note = ""

    def __init__(self, context: Context, path: GlPath, model: PictureModel) -> None:
        """`path` runs that model; it belongs to this job from now on."""
        self._context, self._path, self._model = context, path, model
        self.begin_anew = path.begin_anew
        self.renderer, self.dispatches = context.renderer, path.dispatches
        self.gl_version: str | None = context.gl_version
        with contextlib.ExitStack() as stack:
            self._target, self._compositor = self._way_out(path.frame.format, stack)
            stack.pop_all()

    def _way_out(self, frame: PictureFormat, stack: contextlib.ExitStack) -> tuple[OffscreenTarget, PictureCompositor]:
        """What lies behind the network, and is freed by the stack."""
        made = self._path.picture
        assert made is not None, "the model puts out a picture"
        target = OffscreenTarget(self._context, frame.upright_size, "floats")
        stack.callback(target.release)
        compositor = PictureCompositor(GlPictures(self._context), self._path.frame, made.layout, self._path.fit)
        stack.callback(compositor.release)
        return target, compositor

    def take(self, frame: PictureFormat) -> None:
        """The same network for pictures of another format: two shaders are compiled."""
        self._path.take(frame)
        with contextlib.ExitStack() as stack:
            made = self._way_out(frame, stack)
            stack.pop_all()
        self._target.release()
        self._compositor.release()
        self._target, self._compositor = made

    def run(self, picture: Picture) -> Floats:
        """The network's picture (h, w, 4) with its transparency, 0 to 1."""
        path = self._path
        path.upload(picture)
        path.image_to_tensor()
        path.network()
        self._compositor.draw(path.mask, self._target, "cutout")
        return self._read()

    def _read(self) -> Floats:
        (width, height), gl = self._target.size, self._context.gl
        pixels = np.empty((height, width, 4), np.float32)
        gl.glBindFramebuffer(opengl.READ_FRAMEBUFFER, self._target.framebuffer)
        gl.glPixelStorei(opengl.PACK_ALIGNMENT, 4)
        gl.glReadPixels(0, 0, width, height, opengl.RGBA, opengl.FLOAT, pixels.ctypes.data)
        return pixels[::-1]  # OpenGL's row 0 is the lowest

    def network(self, tensor: Floats) -> Floats:
        """The picture (H, W, 4) on the network's own grid for its input (1, H, W, 3)."""
        program, graph = self._path.program, self._model.graph
        program.write(graph.inputs[0], in_file_type(tensor, graph.tensors[graph.inputs[0]]))
        program.run()
        result = graph.tensors[graph.outputs[0]]
        return picture_of_output(dequantized(program.read(result.index), result), self._model.spec)

    def release(self) -> None:
        """Free everything."""
        self._target.release()
        self._compositor.release()
        self._path.release()

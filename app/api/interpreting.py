"""The public class Interpreter: TensorFlow Lite's interface over OpenGL, native code and TensorFlow Lite."""

import os
from typing import Any

from .app.models.catalogue import CATALOGUE, resolve
from .gpu_delegate.cpu.interpreter_module import load_interpreter_module
from .gpu_delegate.interpreter.interpreter_options import OpResolverType
from .gpu_delegate.interpreter.model_interpreter import ModelInterpreter
from .words import LibraryConsole

__all__ = ["Interpreter", "OpResolverType", "load_delegate"]


class Interpreter(ModelInterpreter):
    __doc__ = ModelInterpreter.__doc__

    def _path_of(self, model_path: Any) -> Any:
        """A name of the catalogue means its file, which is fetched if need be, unless there is a file of that name."""
        if isinstance(model_path, str) and model_path in CATALOGUE and not os.path.exists(model_path):
            with LibraryConsole(quiet=False).download() as progress:
                return resolve(model_path, progress).path
        return model_path


def load_delegate(library: str, options: dict[str, Any] | None = None) -> Any:
    """A delegate of a shared library, for `experimental_delegates`: TensorFlow Lite's function of this name.

        library = "/usr/lib/libedgetpu.so.1"
        if os.path.exists(library):
            delegates = [texelflow.load_delegate(library)]
            interpreter = texelflow.Interpreter("model.tflite", experimental_delegates=delegates)

    library: its path, or its name where the system finds it by that. options: the delegate's own, as text.
    Raises OSError or ValueError where it cannot be loaded, DeviceError where no TensorFlow Lite is installed.
    """
    return load_interpreter_module(newer=True).load_delegate(library, options)

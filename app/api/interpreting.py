"""The public class Interpreter: TensorFlow Lite's interface over OpenGL, native code and TensorFlow Lite."""

import os
from typing import Any

from .app.models.catalogue import resolve
from .app.models.entries import entry_of
from .gpu_delegate.cpu.interpreter_module import load_interpreter_module
from .gpu_delegate.interpreter.interpreter_options import OpResolverType
from .gpu_delegate.interpreter.model_interpreter import ModelInterpreter
from .words import LibraryConsole

__all__ = ["Interpreter", "OpResolverType", "load_delegate"]


class Interpreter(ModelInterpreter):
    """A .tflite model, run by OpenGL, by machine code of our own, or by TensorFlow Lite.

    It has the methods of ai_edge_litert.interpreter.Interpreter, so that a program changes its import alone, and a
    short form that needs none of them:

        interpreter = texelflow.Interpreter("model.tflite")
        result = interpreter(image)  # an array, or a dict by name of a model with several outputs

        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
        interpreter.invoke()
        result = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        print(interpreter.report(), interpreter.backend)

        given = interpreter.tensor(interpreter.get_input_details()[0]["index"])
        given()[...] = image  # written where it is read
        interpreter.reset_all_variables()
        names = [each["name"] for each in interpreter.get_tensor_details()]
        print(interpreter.num_subgraphs(), interpreter.experimental_compress_quantization_zero_points)
        for name in interpreter.get_signature_list():
            run = interpreter.get_signature_runner(name)
        interpreter.resize_tensor_input(0, image.shape)  # allocate_tensors() comes next

        async def answer():
            return await interpreter.run_async(image)  # while others are served

        import moderngl

        context = moderngl.create_standalone_context(backend="egl", require=430)
        interpreter = texelflow.Interpreter("model.tflite", context=context)
        interpreter.allocate_tensors()
        (given,), (found,) = interpreter.get_input_details(), interpreter.get_output_details()
        source, target = (context.buffer(reserve=4 * int(np.prod(each["shape"]))) for each in (given, found))
        interpreter.bind_input(given["index"], source)  # no copy passes the CPU
        interpreter.bind_output(found["index"], target)
        interpreter.invoke()
        interpreter.unbind(found["index"])

        interpreter.close()

    An interpreter is used from any thread; calls are done one after the other, the short form as one. Python's lock is
    free while it computes. What goes wrong is a TexelflowError that is also the ValueError, RuntimeError or TypeError
    which TensorFlow Lite raises for it. close(), or the end of a `with` block, frees what it holds; so does its end.
    """

    def _path_of(self, model_path: Any) -> Any:
        """A name of the catalogue means its file, which is fetched if need be, unless there is a file of that name."""
        if isinstance(model_path, str) and entry_of(model_path) and not os.path.exists(model_path):
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

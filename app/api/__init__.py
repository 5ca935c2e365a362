"""People cut out of pictures and video on GPUs with OpenGL 4.3 or ES 3.1, or the CPU; models as OpenGL programs.

    import texelflow

    with texelflow.Segmenter("selfie") as segment:
        mask = segment(image)  # uint8 (H, W, 3) RGB or (H, W, 4) RGBA to float32 (H, W), 0 to 1

    with texelflow.Pipeline(effect="blur") as camera:
        picture = camera(frame)  # of a video's frames, one after the other; the same kind
        mask = camera.mask  # refined

    texelflow.write("out.webm", texelflow.video("talk.mp4", effect="cutout"))

    model = texelflow.Model.load("network.tflite")
    with texelflow.Program(model) as program:
        program.write(model.inputs[0], values)  # or by its name
        program.run()
        result = program.read(model.outputs[0])

    interpreter = texelflow.Interpreter("network.tflite")  # as TensorFlow Lite's, whose programs change their import
    result = interpreter(values)

What goes wrong is a TexelflowError, whose text is one line that says what is wanted. The same as a command line is
`texelflow` or `python -m texelflow`. Modules below this one are the program's own, and may change.
"""

from typing import TYPE_CHECKING, Any

from .gpu_delegate.base.errors import (
    CatalogueError,
    ContextLostError,
    DeviceError,
    InferenceError,
    MediaError,
    ModelError,
    ModelSizeError,
    OpenGLWarning,
    OutputError,
    SoftwareRendererWarning,
    TexelflowError,
    UnsupportedError,
    UsageError,
)

if TYPE_CHECKING:
    from .app.models.decoders.found import Finding
    from .app.models.decoders.region import FrameRegion
    from .camera_showing import VirtualCamera
    from .gpu_delegate.custom.custom_op import CustomOp, CustomOperator, custom_op
    from .gpu_delegate.delegate.auto_delegate import Delegate
    from .gpu_delegate.delegate.delegate import GpuDelegate
    from .gpu_delegate.model.graph import Tensor
    from .gpu_delegate.programs.weights_cache import WeightsCache
    from .gpu_delegate.targets.gl.runtime import TensorRange
    from .interpreting import Interpreter, OpResolverType, load_delegate
    from .network import Model, Program
    from .picture_pipeline import Pipeline
    from .picture_writing import write
    from .segmenter import Segmenter
    from .video_pictures import Video, video

    __version__ = ""

__all__ = [
    "CatalogueError",
    "ContextLostError",
    "CustomOp",
    "CustomOperator",
    "Delegate",
    "DeviceError",
    "Finding",
    "FrameRegion",
    "GpuDelegate",
    "InferenceError",
    "Interpreter",
    "MediaError",
    "Model",
    "ModelError",
    "ModelSizeError",
    "OpResolverType",
    "OpenGLWarning",
    "OutputError",
    "Pipeline",
    "Program",
    "Segmenter",
    "SoftwareRendererWarning",
    "Tensor",
    "TensorRange",
    "TexelflowError",
    "UnsupportedError",
    "UsageError",
    "Video",
    "VirtualCamera",
    "WeightsCache",
    "__version__",
    "custom_op",
    "load_delegate",
    "video",
    "write",
]

# Loaded when they are first asked for: the command line imports this package, and its help needs none of them.
_PLACES = {
    "CustomOp": "gpu_delegate.custom.custom_op",
    "CustomOperator": "gpu_delegate.custom.custom_op",
    "Delegate": "gpu_delegate.delegate.auto_delegate",
    "Finding": "app.models.decoders.found",
    "FrameRegion": "app.models.decoders.region",
    "GpuDelegate": "gpu_delegate.delegate.delegate",
    "Interpreter": "interpreting",
    "Model": "network",
    "OpResolverType": "interpreting",
    "Pipeline": "picture_pipeline",
    "Program": "network",
    "Segmenter": "segmenter",
    "Tensor": "gpu_delegate.model.graph",
    "TensorRange": "gpu_delegate.targets.gl.runtime",
    "Video": "video_pictures",
    "VirtualCamera": "camera_showing",
    "WeightsCache": "gpu_delegate.programs.weights_cache",
    "custom_op": "gpu_delegate.custom.custom_op",
    "load_delegate": "interpreting",
    "video": "video_pictures",
    "write": "picture_writing",
}


def __getattr__(name: str) -> Any:
    """What is in __all__ and not loaded yet."""
    if name == "__version__":
        from importlib.metadata import version

        found: Any = version("texelflow")
    elif name in _PLACES:
        from importlib import import_module

        found = getattr(import_module(f".{_PLACES[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

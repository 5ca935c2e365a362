"""What to write instead, for arguments that are likely mistakes: the ends of messages, or "" where nothing is known."""

from typing import Any

import numpy as np

__all__ = ["frame_hint", "model_hint"]

_READS_FILE = "; cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB) reads one from a file"
_TF_CONVERTS = "; tf.lite.TFLiteConverter.from_keras_model(model).convert() gives the bytes of a .tflite file"
_TORCH_CONVERTS = "; litert_torch.convert(model, sample_inputs).export('model.tflite') writes a file of it"


def frame_hint(frame: Any) -> str:
    """For what is no frame: uint8 (H, W, 3) or (H, W, 4)."""
    kind = type(frame)
    if frame is None:
        return "; cv2.imread and VideoCapture.read give None where they have no picture: check the path or the camera"
    if isinstance(frame, str | bytes) or hasattr(frame, "__fspath__"):
        return _READS_FILE
    if kind.__module__.startswith("PIL."):
        return "; numpy.asarray(image.convert('RGB')) makes one of it"
    if not isinstance(frame, np.ndarray):
        arrays = hasattr(frame, "__array__") or hasattr(frame, "__dlpack__")
        return "; numpy.asarray(frame) makes one of it" if arrays else ""
    return _way_to_last_channels(frame) or _way_to_bytes(frame)


def _way_to_last_channels(frame: np.ndarray[Any, Any]) -> str:
    """For another order or number of dimensions."""
    shape = frame.shape
    if frame.ndim == 4 and shape[0] == 1:
        moved = "" if shape[3] in (3, 4) else ".transpose(1, 2, 0)" if shape[1] in (3, 4) else ""
        return f"; frame[0]{moved} is the one of this batch"
    if frame.ndim == 4:
        return "; call it with one frame after the other: for frame in frames"
    if frame.ndim == 2 or (frame.ndim == 3 and shape[2] == 1):
        return "; cv2.cvtColor(frame, cv2.COLOR_GRAY2RGB) makes it of a gray one"
    if frame.ndim == 3 and shape[0] in (3, 4) and min(shape[1:]) > 4:
        return "; frame.transpose(1, 2, 0) has channels last"
    return ""


def _way_to_bytes(frame: np.ndarray[Any, Any]) -> str:
    """For other types."""
    if frame.dtype.kind == "f" and frame.size:
        most = "(frame * 255)" if float(np.nanmax(frame)) <= 1 else "frame"
        return f"; {most}.clip(0, 255).astype(numpy.uint8) makes it of this"
    if frame.dtype == np.uint8:
        return ""
    if frame.dtype == np.bool_:
        return "; frame.astype(numpy.uint8) * 255 makes it of this"
    if frame.dtype == np.uint16:
        return "; (frame >> 8).astype(numpy.uint8) makes it of 16 bits"
    return "; frame.astype(numpy.uint8) makes it of 0 to 255" if frame.dtype.kind in "iu" else ""


def model_hint(model: object) -> str:
    """For what is neither a name nor a path."""
    package = type(model).__module__.partition(".")[0]
    if package in ("keras", "tensorflow", "tf_keras"):
        return _TF_CONVERTS
    if package == "torch" or any(base.__module__.startswith("torch.") for base in type(model).__mro__):
        return _TORCH_CONVERTS
    if package == "texelflow":
        return "; give the name or path that it was made with"
    if isinstance(model, bytes | bytearray):
        return "; write its bytes to a file, or give them to texelflow.Interpreter(model_content=...)"
    if isinstance(model, np.ndarray):
        return "; first segment = texelflow.Segmenter(model), then segment(frame)"
    return ""

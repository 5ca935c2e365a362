"""Makes the mask of a picture with TensorFlow Lite's interpreter, with the two lines that have it use the GPU.

    python examples/interpreter_with_delegate.py PICTURE MASK.png MODEL.tflite

What the GPU cannot compute stays on the CPU; the lines on stderr say which operators that is, and why.
"""

import sys

import cv2
import numpy as np

import texelflow  # the first line for the GPU

try:
    from ai_edge_litert.interpreter import Interpreter
except ImportError:
    from tflite_runtime.interpreter import Interpreter

USAGE = "usage: interpreter_with_delegate.py PICTURE MASK.png MODEL.tflite"


def main(picture: str, result: str, model: str) -> None:
    """Write the mask of the first class, as a gray picture of the size of the given one."""
    bgr = cv2.imread(picture)
    if bgr is None:
        sys.exit(f"{picture}: no picture; {USAGE}")
    delegate = texelflow.GpuDelegate(strict=True)  # the second one; strict: tell if there is no GPU to use
    interpreter = Interpreter(model_path=model, experimental_delegates=[delegate])
    interpreter.allocate_tensors()

    (taken,), (given, *_) = interpreter.get_input_details(), interpreter.get_output_details()
    _, height, width, _ = taken["shape"]
    small = cv2.resize(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB), (int(width), int(height)), interpolation=cv2.INTER_AREA)
    interpreter.set_tensor(taken["index"], (small / np.float32(255))[None])
    interpreter.invoke()
    mask = interpreter.get_tensor(given["index"])[0, ..., 0]
    cv2.imwrite(result, cv2.resize(np.rint(mask.clip(0, 1) * 255).astype(np.uint8), (bgr.shape[1], bgr.shape[0])))
    print(f"{delegate.renderer}: {delegate.summary}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(USAGE)
    try:
        main(*sys.argv[1:])
    except (RuntimeError, ValueError, texelflow.TexelflowError) as error:  # TensorFlow Lite raises the first two
        sys.exit(str(error))

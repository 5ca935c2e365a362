"""Runs a model on a tensor of PyTorch, and has its result as one, without a copy of it; PyTorch draws with the mask.

pip install torch
python examples/torch_tensors.py PICTURE RESULT.png [MODEL]
"""

import sys

import cv2
import torch
from torch.nn.functional import interpolate

import texelflow

USAGE = "usage: torch_tensors.py PICTURE RESULT.png [MODEL]"


def main(picture: str, result: str, model: str = "selfie") -> None:
    """Write the picture with its background in gray."""
    bgr = cv2.imread(picture)
    if bgr is None:
        sys.exit(f"{picture}: no picture; {USAGE}")
    image = torch.from_numpy(bgr).flip(-1).permute(2, 0, 1)[None] / 255  # (1, 3, H, W), 0 to 1, RGB
    with texelflow.Interpreter(model) as interpreter:
        _, height, width, _ = map(int, interpreter.get_input_details()[0]["shape"])
        small = interpolate(image, (height, width), mode="bilinear", antialias=True)
        values = interpreter(small.permute(0, 2, 3, 1))  # a tensor goes in, in any strides
        mask = torch.from_dlpack(values).permute(0, 3, 1, 2)  # the array's own memory as a tensor
        print(interpreter.report())
    person = interpolate(mask, image.shape[2:], mode="bilinear").clamp(0, 1)
    gray = image.mean(1, keepdim=True)
    drawn = torch.lerp(gray, image, person)[0].permute(1, 2, 0).flip(-1)
    cv2.imwrite(result, (drawn * 255).round().to(torch.uint8).numpy())


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(USAGE)
    try:
        main(*sys.argv[1:])
    except texelflow.TexelflowError as error:
        sys.exit(str(error))

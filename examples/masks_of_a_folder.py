"""Writes a gray PNG mask of each picture of a folder to another folder.

python examples/masks_of_a_folder.py PICTURES MASKS [--model NAME|FILE] [--backend auto|gl|cpu]
"""

import argparse
import sys
from pathlib import Path

import cv2
import numpy as np

import texelflow

KINDS = (".jpg", ".jpeg", ".png", ".webp")


def main() -> int:
    """Read, segment and write, picture by picture; what cannot be read is named and left."""
    parser = argparse.ArgumentParser(description="Write the mask of each picture of a folder as a gray PNG.")
    parser.add_argument("pictures", type=Path)
    parser.add_argument("masks", type=Path, help="made if it is not there")
    parser.add_argument("--model", default="selfie", help="a name that `texelflow models` lists, or a .tflite file")
    parser.add_argument("--backend", default="auto", choices=("auto", "gl", "cpu"))
    options = parser.parse_args()
    try:
        options.masks.mkdir(parents=True, exist_ok=True)
        paths = sorted(path for path in options.pictures.iterdir() if path.suffix.lower() in KINDS)
        with texelflow.Segmenter(options.model, options.backend) as segment:
            print(f"{len(paths)} pictures, {segment.model} on {segment.renderer}")
            for path in paths:
                bgr = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR)
                if bgr is None:
                    print(f"{path}: no picture", file=sys.stderr)
                    continue
                mask = segment(cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB))
                _, png = cv2.imencode(".png", np.rint(mask * 255).astype(np.uint8))
                png.tofile(options.masks / f"{path.stem}.png")
    except (texelflow.TexelflowError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""A program for ai-edge-litert, as its documentation has them: names what a picture shows, by a classifier."""

import argparse
import time

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from PIL import Image


def load_labels(filename: str) -> list[str]:
    with open(filename) as f:
        return [line.strip() for line in f.readlines()]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-i", "--image", help="image to be classified")
    parser.add_argument("-m", "--model_file", help=".tflite model to be executed")
    parser.add_argument("-l", "--label_file", help="name of file containing labels")
    parser.add_argument("--input_mean", default=127.5, type=float)
    parser.add_argument("--input_std", default=127.5, type=float)
    parser.add_argument("--num_threads", default=None, type=int)
    args = parser.parse_args()

    interpreter = Interpreter(model_path=args.model_file, experimental_delegates=None, num_threads=args.num_threads)
    interpreter.allocate_tensors()
    input_details = interpreter.get_input_details()
    output_details = interpreter.get_output_details()
    floating_model = input_details[0]["dtype"] == np.float32

    # NxHxWxC, H:1, W:2
    height = input_details[0]["shape"][1]
    width = input_details[0]["shape"][2]
    img = Image.open(args.image).convert("RGB").resize((width, height))
    input_data = np.expand_dims(img, axis=0)  # type: ignore[call-overload]
    if floating_model:
        input_data = (np.float32(input_data) - args.input_mean) / args.input_std

    interpreter.set_tensor(input_details[0]["index"], input_data)
    start_time = time.time()
    interpreter.invoke()
    stop_time = time.time()

    output_data = interpreter.get_tensor(output_details[0]["index"])
    results = np.squeeze(output_data)
    top_k = results.argsort()[-5:][::-1]
    labels = load_labels(args.label_file)
    for i in top_k:
        if floating_model:
            print(f"{float(results[i]):08.6f}: {labels[i]}")
        else:
            print(f"{float(results[i] / 255.0):08.6f}: {labels[i]}")
    assert stop_time >= start_time


if __name__ == "__main__":
    main()

"""Bytes in and out, by scales and zero points, through arrays over the tensors."""

import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter

interpreter = Interpreter(sys.argv[1])
interpreter.allocate_tensors()
given, found = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
scale, zero_point = given["quantization"]
real = np.linspace(-1, 1, given["shape"].prod()).reshape(given["shape"])
interpreter.tensor(given["index"])()[0][:] = np.clip(np.round(real / scale + zero_point), -128, 127)[0]
for _ in range(2):
    interpreter.invoke()
output = interpreter.tensor(found["index"])
parameters = found["quantization_parameters"]
for value in (output().astype(np.float64) - parameters["zero_points"][0]).ravel()[:12] * parameters["scales"][0]:
    print(value)

"""A program for ai-edge-litert, as its documentation has them: lists a model's signatures, and calls each by names."""

import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter

interpreter = Interpreter(sys.argv[1])
signatures = interpreter.get_signature_list()
print("Signature:", signatures)

for key in sorted(signatures):
    runner = interpreter.get_signature_runner(key)
    inputs = runner.get_input_details()
    values = {}
    for number, name in enumerate(sorted(inputs)):
        detail = inputs[name]
        print(key, name, detail["shape"].tolist(), np.dtype(detail["dtype"]).name)
        shape = detail["shape"]
        values[name] = np.linspace(-1, 1 + number, int(np.prod(shape)), dtype=detail["dtype"]).reshape(shape)
    output = runner(**values)
    for name in sorted(output):
        print(key, name, output[name].dtype, output[name].shape, float(output[name].sum()))

for wrong in ({"signature_key": "nothing of that name"}, {"signature_key": None}):
    try:
        interpreter.get_signature_runner(**wrong)
    except ValueError as error:
        print("ValueError", str(error)[:7])
try:
    interpreter.get_signature_runner("sum")(wrong=1)
except ValueError as error:
    print("ValueError", str(error)[:7])

"""A program for ai-edge-litert, as its documentation has them: batches of other sizes, buffers in place, errors."""

import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter

with open(sys.argv[1], "rb") as f:
    interpreter = Interpreter(model_content=f.read())
input_index = interpreter.get_input_details()[0]["index"]
output_index = interpreter.get_output_details()[0]["index"]
print(interpreter.get_input_details()[0]["shape_signature"].tolist())

for batch in (1, 3, 2):
    shape = [batch, *interpreter.get_input_details()[0]["shape"][1:].tolist()]
    interpreter.resize_tensor_input(input_index, shape)
    interpreter.allocate_tensors()
    input_data = np.linspace(0, batch, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    interpreter.set_tensor(input_index, input_data)
    interpreter.invoke()
    output_data = interpreter.get_tensor(output_index)
    print(batch, output_data.shape, float(output_data.mean()))

    view = interpreter.tensor(input_index)
    output = interpreter.tensor(output_index)
    for i in range(3):
        view().fill(i / 2)
        interpreter.invoke()
        print(batch, i, output().shape, float(output().mean()))

for value in (np.zeros([2, 2], np.float32), input_data.astype(np.float64)):
    try:
        interpreter.set_tensor(input_index, value)
    except ValueError as error:
        print(error)
interpreter.resize_tensor_input(input_index, [5, *shape[1:]])
try:
    interpreter.invoke()
except RuntimeError as error:
    print("RuntimeError", "allocate" in str(error).lower() or "ready" in str(error).lower())

"""A window of sound after the other, of which the model remembers what it has heard."""

import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter

interpreter = Interpreter(sys.argv[1])
interpreter.allocate_tensors()
(source,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()
for _ in range(2):
    for window in range(3):
        interpreter.set_tensor(source["index"], np.full(source["shape"], window + 1, np.float32))
        interpreter.invoke()
        print(float(interpreter.get_tensor(result["index"]).sum()))
    interpreter.reset_all_variables()

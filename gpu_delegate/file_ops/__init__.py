"""How a .tflite file encodes each op: for every op a function that reads it and one that writes it."""

"""How a .tflite file says each op: for every op the function that reads it and the one that writes it."""

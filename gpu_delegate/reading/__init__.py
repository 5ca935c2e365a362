"""Reading and writing models: the bytes of a .tflite file to a verified Graph, and back."""

"""TensorFlow Lite's delegate for OpenGL, through ctypes: the interpreter's supported operators run on the GPU."""

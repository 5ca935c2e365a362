"""TensorFlow Lite's interpreter goes in, its supported operators run in OpenGL: a delegate, through ctypes."""

"""A network on frames, on the GPU or the CPU, and how far its masks are from TensorFlow Lite's."""

"""`texelflow check`: a recording or a model compared with TensorFlow Lite on the CPU."""

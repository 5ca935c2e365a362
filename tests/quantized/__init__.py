"""Quantized models go in; how near each way of running them is to TensorFlow Lite's reference kernels comes out."""

"""Compares quantized models, here and in XNNPACK, with TensorFlow Lite's reference kernels."""

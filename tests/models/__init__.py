"""Measures real models and published networks on the GPU, and compares them with the CPU."""

"""Networks on regions of frames: on the GPU, in the CPU's own code, or by TensorFlow Lite."""

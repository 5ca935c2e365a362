"""How long a model takes on the GPU, on the CPU or through the delegate."""

"""What the compilers of real GPUs make of the kernels, on machines without those GPUs."""

"""Kernels go in; what the compilers of real GPUs make of them comes out, on machines without those GPUs."""

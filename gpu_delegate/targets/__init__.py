"""One folder for each language or interface that kernels are made for."""

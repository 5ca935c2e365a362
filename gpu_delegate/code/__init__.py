"""The vocabulary in which kernels are written, whatever language they are printed in."""

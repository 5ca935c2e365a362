"""The vocabulary in which kernels are said, whatever language they are printed in."""

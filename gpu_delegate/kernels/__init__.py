"""The statements of each kind of kernel, in the kernels' vocabulary."""

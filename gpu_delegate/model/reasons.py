"""The texts that reports show for constant operators that the delegate leaves to the CPU."""

CONSTANT_OF_CPU = "constant; what reads it stays on the CPU"
CONSTANT_OUTPUT = "constant; it is an output of the model"

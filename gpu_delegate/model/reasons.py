"""The texts that reports show for operators that are left to the CPU without being refused."""

CONSTANT_OF_CPU = "constant; what reads it stays on the CPU"
CONSTANT_OUTPUT = "constant; it is an output of the model"
BY_FUNCTION = "a custom op that a Python function computes"

"""Why operators of constants stay on the CPU, in words by which others know these reasons from all others."""

CONSTANT_OF_CPU = "constant; what reads it stays on the CPU"
CONSTANT_OUTPUT = "constant; it is an output of the model"

"""Why the delegate leaves operators of constants to the CPU: texts that reports show, and by which they know these."""

CONSTANT_OF_CPU = "constant; what reads it stays on the CPU"
CONSTANT_OUTPUT = "constant; it is an output of the model"

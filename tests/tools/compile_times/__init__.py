"""How long compiling takes, by the shape and the size of a network: `python -m tests.tools.compile_times`."""

"""What only those measure who work on the program: each is a command, `python -m tests.tools.NAME --help`."""

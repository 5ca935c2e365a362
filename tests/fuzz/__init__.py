"""Attacks on the program with damaged and hostile input: `python -m tests.fuzz`."""

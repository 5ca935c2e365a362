"""A number of cases and a seed go in; what the program made of as many attacks comes out: `python -m tests.fuzz`."""

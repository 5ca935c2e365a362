"""Tables of what ops compute, row by row."""

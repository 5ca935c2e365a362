"""Measurements of the program: times, quality of masks, Python's cost; one file for each benchmark."""

"""What users measure: times, memory, quality of masks, Python's cost, all of a GPU.

What only those measure who work on the program is in tests/tools.
"""

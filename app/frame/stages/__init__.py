"""A frame's way as an ordered list of stages, and what each of them takes."""

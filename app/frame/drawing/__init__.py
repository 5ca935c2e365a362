"""A frame and what a network made of it, drawn into a picture."""

"""A picture in RAM: its planes, what its numbers mean, and its conversion to RGB and to the network's input."""

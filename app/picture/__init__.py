"""Pictures in RAM: their planes, what their numbers mean, and conversion to RGB and to a network's input."""

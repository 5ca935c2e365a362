"""What an input's results are called, how they lie on the disk, and what is told of them."""

"""Where a network runs: the frame job is measured in each backend, and one is chosen."""

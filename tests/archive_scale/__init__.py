"""A cluster of a thousand nodes and a million recordings, simulated around the real scheduler and the real manifest."""

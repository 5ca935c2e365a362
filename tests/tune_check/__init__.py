"""Whether the tuner finds a software renderer's own settings again: `make tune-check`."""

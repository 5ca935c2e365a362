"""Layers of a network on the CPU, ours in turn with those of other engines: `python -m tests.tools.layers`."""

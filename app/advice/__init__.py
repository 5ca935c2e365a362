"""Advice on a model: what to change in it so that it costs less on the GPU."""

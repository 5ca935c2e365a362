"""Runs every model of the catalogue and of a folder on the GPU and in native code, and says how each one does."""

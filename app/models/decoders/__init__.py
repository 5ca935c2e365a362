"""Decoders: what a network found, of the numbers that it puts out."""

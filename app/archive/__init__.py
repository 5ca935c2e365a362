"""Thousands of recordings go in; what replay makes of each comes out, by workers on many machines (Ray)."""

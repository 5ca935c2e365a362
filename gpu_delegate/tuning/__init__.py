"""Finds the fastest tiles and fusion settings on a device, by measuring."""

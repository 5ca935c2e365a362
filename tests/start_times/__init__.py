"""Seconds of the CPU that a first and a second start take, model by model."""

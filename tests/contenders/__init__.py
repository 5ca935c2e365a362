"""Whole models on the CPU, in our own code and in those of others."""

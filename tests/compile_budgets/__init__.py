"""Seconds of the CPU that compiling takes: `make compile-budgets`."""

"""Graphs, devices and clocks go in; the kernels that are fastest on a device come out, found by measuring."""

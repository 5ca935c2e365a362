"""A model as a graph: its tensors, layouts, quantization, and how it is edited and partitioned."""

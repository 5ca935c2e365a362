"""Memory planning: offsets or shared buffers for tensors, from their sizes and lifetimes."""

"""Decisions about a rewritten graph: which nodes make a kernel, how threads share it, where tensors lie."""

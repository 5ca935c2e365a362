"""The CPU as a target: compiles a Graph to machine code with LLVM, and runs it."""

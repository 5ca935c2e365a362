"""The CPU as a second target: a Graph goes in, machine code for it, made by LLVM, comes out and runs."""

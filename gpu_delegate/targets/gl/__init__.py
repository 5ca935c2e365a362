"""OpenGL: contexts, buffers, programs, timers, and the runtime that executes a compiled graph."""
